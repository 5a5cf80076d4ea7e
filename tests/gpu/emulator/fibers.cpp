#undef _FORTIFY_SOURCE // its longjmp takes a change of stacks for a mistake
// Kernels: a thread is a fiber that goes on until it waits for others; blocks follow each other.
#include "inside.h"

#include <csetjmp>
#include <cstring>
#include <ucontext.h>
#include <vector>

namespace emulated
{
dim3 grid, block, block_at, thread_at;

static const unsigned most = 1024, stack_bytes = 32768;
// Made once; switched by jumps, since swapcontext asks the kernel each time.
struct fiber {
    ucontext_t context;
    jmp_buf place;
    std::vector<char> stack;
    bool made, idle;
};
static std::vector<fiber> fibers(most);
static fiber *running;
static jmp_buf scheduler;
static const std::function<void()> *kernel;
static unsigned progress, next, ended, at_barrier, barriers, at_warp[most / 32], warps[most / 32];
static unsigned mask_of[most / 32]; // of the shuffle that the warp's lanes are in
static double given[most];

static unsigned number()
{
    return thread_at.y * block.x + thread_at.x;
}

unsigned lane()
{
    return number() % 32;
}

__attribute__((noinline)) static void yield()
{
    const dim3 at = thread_at;
    if (_setjmp(running->place) == 0)
        _longjmp(scheduler, 1);
    thread_at = at;
}

// A fiber runs threads of the block, one after the other, until one has to wait; then those of the next.
static void run()
{
    for (;;) {
        while (next < block.x * block.y) {
            thread_at = dim3(next % block.x, next / block.x);
            next++;
            (*kernel)();
            ended++;
            progress++;
        }
        running->idle = true;
        yield();
    }
}

__attribute__((noinline)) static void resume(fiber *fiber)
{
    running = fiber;
    if (_setjmp(scheduler) != 0)
        return;
    if (fiber->made)
        _longjmp(fiber->place, 1);
    fiber->made = true;
    (void)setcontext(&fiber->context);
}

static void start(fiber *fiber)
{
    progress++;
    fiber->idle = false;
    if (!fiber->made) {
        fiber->stack.resize(stack_bytes);
        (void)getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack.data();
        fiber->context.uc_stack.ss_size = stack_bytes;
        fiber->context.uc_link = nullptr;
        makecontext(&fiber->context, run, 0);
    }
    resume(fiber);
}

static void run_block()
{
    unsigned threads = block.x * block.y, used = 0;
    next = ended = at_barrier = 0;
    std::memset(at_warp, 0, sizeof at_warp);
    while (ended < threads) {
        unsigned before = progress;
        while (next < threads)
            start(&fibers[used++]);
        for (unsigned f = 0; f < used; f++)
            if (!fibers[f].idle)
                resume(&fibers[f]);
        if (ended < threads && progress == before)
            broken("a barrier that not all threads reach");
    }
}

static void run_grid(dim3 grid_, dim3 block_, const std::function<void()> &thread)
{
    grid = grid_, block = block_, kernel = &thread;
    for (block_at.y = 0; block_at.y < grid.y; block_at.y++)
        for (block_at.x = 0; block_at.x < grid.x; block_at.x++)
            run_block();
}

void launch(dim3 grid_, dim3 block_, cudaStream_t stream, std::function<void()> thread, const words &names)
{
    if (grid_.x == 0 || grid_.y == 0 || grid_.y > 65535 || block_.x == 0 || block_.y == 0 ||
        block_.x * block_.y > most)
        broken("a launch that no device takes");
    uint64_t number = ++emulator.launches;
    if (number == emulator.refused_at) {
        (void)say(static_cast<cudaError_t>(emulator.refused_code));
        return;
    }
    auto run = [=] {
        emulator.faulty = emulator.faulty || number == emulator.fault_at;
        if (!emulator.faulty)
            run_grid(grid_, block_, thread);
    };
    issue(stream, run, names);
}

void block_barrier()
{
    unsigned mine = barriers;
    if (++at_barrier == block.x * block.y) {
        at_barrier = 0;
        barriers++;
        progress++;
    }
    while (mine == barriers)
        yield();
}

static void warp_barrier(unsigned mask)
{
    unsigned w = number() / 32, mine = warps[w];
    if ((mask >> lane() & 1) == 0)
        broken("a lane shuffles under a mask that does not name it");
    if (at_warp[w] > 0 && mask_of[w] != mask)
        broken("lanes of a warp shuffle under different masks");
    mask_of[w] = mask;
    if (++at_warp[w] == static_cast<unsigned>(__builtin_popcount(mask))) {
        at_warp[w] = 0;
        warps[w]++;
        progress++;
    }
    while (mine == warps[w])
        yield();
}

double shuffle(unsigned mask, double x, unsigned from)
{
    unsigned mine = number();
    given[mine] = x;
    warp_barrier(mask);
    double got = from >= 32 ? x : (mask >> from & 1) == 0 ? NAN : given[mine / 32 * 32 + from];
    warp_barrier(mask);
    return got;
}
} // namespace emulated
