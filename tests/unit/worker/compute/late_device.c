#include "late_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void broken(const char *what)
{
    (void)fprintf(stderr, "late device: %s\n", what);
    abort();
}

static void late_close(void *self) {}

static enum dp_status late_alloc(void *self, size_t bytes, void **out, struct dp_error *err)
{
    return ((struct late_device *)self)->cpu->alloc(NULL, bytes, out, err);
}

static void late_release(void *self, void *block)
{
    ((struct late_device *)self)->cpu->release(NULL, block);
}

static enum dp_status late_pin(void *self, void *host, size_t bytes, struct dp_error *err)
{
    struct late_device *late = self;
    if (late->pins == LATE_COPIES)
        broken("too many blocks are pinned");
    late->pinned[late->pins++] = (struct late_copy){.to = host, .bytes = bytes};
    return DP_OK;
}

static bool late_unpin(void *self, void *host)
{
    struct late_device *late = self;
    for (int i = 0; i < late->pins; i++)
        if (late->pinned[i].to == host) {
            late->pinned[i] = late->pinned[--late->pins];
            return !late->lost;
        }
    broken("unpinned what was not pinned");
    return false;
}

/* FNV-1a of all that is pinned. */
static uint64_t pinned_sum(const struct late_device *late)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (int i = 0; i < late->pins; i++) {
        const unsigned char *at = late->pinned[i].to;
        for (size_t b = 0; b < late->pinned[i].bytes; b++)
            sum = (sum ^ at[b]) * 0x100000001b3u;
    }
    return sum;
}

static bool is_pinned(const struct late_device *late, const void *host, size_t bytes)
{
    for (int i = 0; i < late->pins; i++) {
        const char *begin = late->pinned[i].to, *at = host;
        if (at >= begin && at + bytes <= begin + late->pinned[i].bytes)
            return true;
    }
    return false;
}

static enum dp_status add(struct late_device *late, struct late_copy *copies, int *count,
                          struct late_copy copy, struct dp_error *err)
{
    if (++late->copies == late->fail_copy_at)
        return dp_fail(err, DP_IO, "late copy failed");
    if (*count == LATE_COPIES)
        broken("too many copies in a step");
    copies[(*count)++] = copy;
    return DP_OK;
}

static enum dp_status late_copy_in(void *self, void *device, const void *host, size_t bytes,
                                   struct dp_error *err)
{
    struct late_device *late = self;
    struct late_slot *slot = &late->slot[late->at];
    if (late->stage != DP_STAGE_IN)
        broken("a copy in at another stage");
    memcpy(device, host, bytes);
    return add(late, slot->in, &slot->ins, (struct late_copy){device, host, bytes}, err);
}

static enum dp_status late_copy_out(void *self, void *host, const void *device, size_t bytes,
                                    struct dp_error *err)
{
    struct late_device *late = self;
    struct late_slot *slot = &late->slot[late->at];
    if (late->stage != DP_STAGE_OUT)
        broken("a copy out at another stage");
    memset(host, 0xff, bytes);
    return add(late, slot->out, &slot->outs, (struct late_copy){host, device, bytes}, err);
}

static enum dp_status late_zero(void *self, void *block, size_t bytes, struct dp_error *err)
{
    if (((struct late_device *)self)->stage != DP_STAGE_COMPUTE)
        broken("zeroes at another stage");
    return ((struct late_device *)self)->cpu->zero(NULL, block, bytes, err);
}

static void complete(struct late_slot *slot)
{
    for (int i = 0; i < slot->ins; i++)
        if (memcmp(slot->in[i].to, slot->in[i].from, slot->in[i].bytes) != 0)
            broken("host memory changed while it was copied in");
    for (int i = 0; i < slot->outs; i++)
        memcpy(slot->out[i].to, slot->out[i].from, slot->out[i].bytes);
    slot->ins = slot->outs = 0;
}

static enum dp_status late_finish(void *self, struct dp_error *err)
{
    struct late_device *late = self;
    for (uint32_t s = 0; s < DP_BACKEND_SLOTS; s++) {
        complete(&late->slot[s]);
        if (late->slot[s].state == LATE_UNDER_WAY)
            late->slot[s].state = LATE_FINISHED;
    }
    return DP_OK;
}

static void end_step(struct late_device *late, struct late_slot *slot)
{
    for (int i = 0; i < slot->ins; i++)
        late->unpinned += !is_pinned(late, slot->in[i].from, slot->in[i].bytes);
    for (int i = 0; i < slot->outs; i++)
        late->unpinned += !is_pinned(late, slot->out[i].to, slot->out[i].bytes);
    late->overlapped += late->slot[(late->at + 1) % DP_BACKEND_SLOTS].state == LATE_UNDER_WAY;
    slot->state = LATE_UNDER_WAY;
}

static void late_mark(void *self, enum dp_stage stage, uint32_t slot)
{
    struct late_device *late = self;
    if (stage == DP_STAGE_IN && late->slot[slot].state == LATE_UNDER_WAY)
        broken("a slot is used before its step was waited for");
    if (stage == DP_STAGE_IN)
        late->sum = pinned_sum(late);
    else if (stage == DP_STAGE_COMPUTE && late->stage == DP_STAGE_IN && pinned_sum(late) != late->sum)
        broken("the host writes while copies in are timed");
    late->at = slot;
    late->stage = stage;
    if (stage == DP_STAGE_END)
        end_step(late, &late->slot[slot]);
}

static bool late_done(void *self, uint32_t slot)
{
    struct late_device *late = self;
    return ++late->polls % 3 == 0;
}

static enum dp_status late_wait(void *self, uint32_t slot, struct dp_device_times *times,
                                struct dp_error *err)
{
    struct late_device *late = self;
    if (late->slot[slot].state == LATE_FREE)
        broken("a wait for a step that was not begun");
    if (++late->waits == late->fail_wait_at)
        return dp_fail(err, DP_IO, "late kernel failed");
    complete(&late->slot[slot]);
    late->slot[slot].state = LATE_FREE;
    *times = (struct dp_device_times){.copy_in = 1e-6, .compute = 2e-6, .copy_out = 3e-6};
    return DP_OK;
}

void late_device_init(struct late_device *late, struct dp_backend *out)
{
    struct dp_backend cpu;
    memset(late, 0, sizeof *late);
    if (dp_backend_cpu(1, &cpu, NULL) != DP_OK)
        broken("no CPU backend");
    late->ops = *cpu.ops;
    late->cpu = cpu.ops;
    late->ops.name = "late";
    late->ops.host_memory = false;
    late->ops.close = late_close;
    late->ops.alloc = late_alloc;
    late->ops.release = late_release;
    late->ops.pin = late_pin;
    late->ops.unpin = late_unpin;
    late->ops.copy_in = late_copy_in;
    late->ops.copy_out = late_copy_out;
    late->ops.zero = late_zero;
    late->ops.finish = late_finish;
    late->ops.mark = late_mark;
    late->ops.done = late_done;
    late->ops.wait = late_wait;
    *out = (struct dp_backend){&late->ops, late};
}
