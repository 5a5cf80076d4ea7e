/* How a directory was left, and what the next open makes of it: each transition, and a kill at any moment. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "server/store/marks.h"

#include "tests/lib/child.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ROW  64u
#define ROWS 40u

enum left { LEFT_NEW, LEFT_CLEAN, LEFT_OPEN, LEFT_JOURNALED, LEFTS };

static int set_up(void **state)
{
    *state = form_new(true);
    return 0;
}
static int tear_down(void **state)
{
    form_free(*state);
    return 0;
}

static enum dp_status open_as(struct form *form, bool journaled, bool *recovers, struct dp_error *err)
{
    form->options.journaled = journaled;
    form->options.recovers = recovers;
    return form_open(form, err);
}

static void leave(struct form *form, enum left left)
{
    struct dp_error err = {0};
    if (left == LEFT_NEW)
        return;
    assert_int_equal(open_as(form, left == LEFT_JOURNALED, NULL, &err), DP_OK);
    form_close(form, left == LEFT_CLEAN);
}

/* All of (how it was left) x (how it is opened) x (how it is closed then), and the open after that. */
static void every_transition(void **state)
{
    static const struct {
        enum dp_status status[2]; /* of an open without a journal, and with one */
        bool recovers;            /* of the one with */
        const char *text[2];
    } expected[LEFTS] = {
        [LEFT_NEW] = {{DP_OK, DP_OK}, false, {"", ""}},
        [LEFT_CLEAN] = {{DP_OK, DP_OK}, false, {"", ""}},
        [LEFT_OPEN] = {{DP_UNCLEAN, DP_UNCLEAN}, false, {"--discard", "--discard"}},
        [LEFT_JOURNALED] = {{DP_UNCLEAN, DP_OK}, true, {"durability machine or process", ""}},
    };
    for (int left = 0; left < LEFTS; left++)
        for (int how = 0; how < 4; how++) {
            bool journaled = how & 1, clean = how & 2, recovers = !expected[left].recovers;
            struct form *form = form_new(true);
            struct dp_error err = {0};
            leave(form, (enum left)left);
            enum dp_status st = open_as(form, journaled, &recovers, &err);
            assert_int_equal(st, expected[left].status[journaled]);
            assert_non_null(strstr(err.text, expected[left].text[journaled]));
            enum left now = (enum left)left; /* a refusal changes nothing */
            if (st == DP_OK) {
                assert_int_equal(recovers, journaled && expected[left].recovers);
                form_close(form, clean);
                now = clean ? LEFT_CLEAN : journaled ? LEFT_JOURNALED : LEFT_OPEN;
            }
            st = open_as(form, true, &recovers, &err);
            assert_int_equal(st, expected[now].status[1]);
            if (st == DP_OK)
                assert_int_equal(recovers, expected[now].recovers);
            form_free(form);
        }
}

/* What the parent knows of a directory whose user was killed. */
enum known { KNOWN_CLEAN, KNOWN_OPEN, KNOWN_EITHER };

struct shared { /* between the processes */
    uint32_t version, submitted;
    bool recovered;
};

/* Where a life ends: after so many steps; there the process stays until it is killed, or goes on meanwhile. */
struct end {
    uint32_t step;
    bool stays;
    uint32_t after_us; /* of one that goes on */
};

struct says {
    int to;
    uint32_t steps;
    const struct end *end;
};

static void say(struct says *says, char what)
{
    if (write(says->to, &what, 1) != 1)
        _exit(3);
    while (says->steps == says->end->step && says->end->stays)
        (void)pause();
    says->steps++;
}

/* Opens, writes, closes cleanly, again and again, and says each step in front of and behind it: O pen, w ritten,
 * C lose. The rows are of the next version each time. */
static void live(struct form *form, bool journaled, struct shared *shared, struct says *says)
{
    struct dp_error err = {0};
    struct batch *batch = batch_new(ROWS, ROW);
    for (;;) {
        say(says, 'O');
        if (open_as(form, journaled, NULL, &err) != DP_OK)
            _exit(2);
        say(says, 'o');
        batch_fill(batch, 1, 0, 3, ++shared->submitted);
        if (form_do(form, batch_job(batch, DP_STORE_WRITE)) != DP_OK)
            _exit(4);
        shared->version = shared->submitted;
        say(says, 'w');
        say(says, 'C');
        if (dp_rocks_store_mark_clean(&form->store, &err) != DP_OK)
            _exit(5);
        say(says, 'c');
        form_close(form, false);
    }
}

/* The exit code says what is wrong. */
static int look(struct form *form, bool journaled, struct shared *shared, enum known known, bool leave_clean)
{
    struct dp_error err = {0};
    bool recovers = false;
    enum dp_status st = open_as(form, false, NULL, &err);
    if (!journaled) { /* once clean, now "open"; the directory is used no more */
        if (st != DP_OK && st != DP_UNCLEAN)
            return 10;
        return (known == KNOWN_CLEAN && st != DP_OK) || (known == KNOWN_OPEN && st != DP_UNCLEAN) ? 11 : 0;
    }
    if (st == DP_OK) { /* opened without its journal: clean it must have been */
        if (known == KNOWN_OPEN)
            return 12;
        form_close(form, true);
    } else if (st != DP_UNCLEAN || known == KNOWN_CLEAN || !strstr(err.text, "machine or process"))
        return 13;
    bool clean = st == DP_OK;
    if (open_as(form, true, &recovers, &err) != DP_OK)
        return 14;
    if (recovers == clean)
        return 15;
    shared->recovered = shared->recovered || recovers;
    struct batch *batch = batch_new(ROWS, ROW), *expected = batch_new(ROWS, ROW);
    batch_fill(batch, 1, 0, 3, 0);
    if (form_do(form, batch_job(batch, DP_STORE_READ)) != DP_OK)
        return 16;
    bool same = false; /* the last that completed, or one that was under way: in full */
    for (uint32_t v = shared->version; v <= shared->submitted && !same; v++) {
        batch_fill(expected, 1, 0, 3, v);
        same = v == 0 ? !batch->found[0] : memcmp(batch->bytes, expected->bytes, (size_t)ROWS * ROW) == 0;
        shared->version = same ? v : shared->version;
    }
    if (!same)
        return 17;
    shared->submitted = shared->version; /* what was under way is there now or never */
    batch_free(batch);
    batch_free(expected);
    form_close(form, leave_clean);
    return 0;
}

/* Kills `live` where it is to end, and gives what is known then. */
static enum known kill_at(struct form *form, bool journaled, struct shared *shared, enum known known,
                          const struct end *end)
{
    int ends[2];
    char said = 0;
    struct timespec nap = {0, (long)end->after_us * 1000};
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        live(form, journaled, shared, &(struct says){.to = ends[1], .end = end});
    (void)close(ends[1]);
    for (uint32_t i = 0; read(ends[0], &said, 1) == 1; i++) {
        if (i == end->step) {
            (void)nanosleep(&nap, NULL);
            assert_int_equal(kill(child, SIGKILL), 0);
        }
        if (said == 'O')
            known = known == KNOWN_OPEN ? KNOWN_OPEN : KNOWN_EITHER;
        else if (said == 'C')
            known = KNOWN_EITHER;
        else
            known = said == 'c' ? KNOWN_CLEAN : KNOWN_OPEN;
    }
    (void)close(ends[0]);
    assert_int_equal(dp_exit_of(child), -SIGKILL);
    return known;
}

static void kill_rounds(bool journaled, uint32_t rounds)
{
    struct form *form = form_new(true);
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    enum known known = KNOWN_CLEAN;
    uint64_t random = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)random);
    assert_true(shared != MAP_FAILED);
    for (uint32_t round = 0; round < rounds; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        bool leave_clean = random >> 63;
        /* Each step once for sure: the store is clean most of the time, and a kill at any time may never find it open. */
        struct end end = {.step = round % 11, .stays = round < 11};
        end.after_us = end.stays ? 0 : (uint32_t)(random >> 33) % 8000;
        known = kill_at(form, journaled, shared, known, &end);
        pid_t child = fork();
        if (child == 0)
            _exit(look(form, journaled, shared, known, leave_clean));
        int code = dp_exit_of(child);
        if (code != 0)
            fail_msg("round %u: check %d failed", round, code);
        known = leave_clean ? KNOWN_CLEAN : KNOWN_OPEN;
        if (!journaled) {
            form_free(form);
            form = form_new(true);
            known = KNOWN_CLEAN;
            *shared = (struct shared){0};
        }
    }
    assert_int_equal(shared->recovered, journaled);
    assert_int_equal(munmap(shared, sizeof *shared), 0);
    form_free(form);
}

static void killed_with_a_journal_recovers(void **state)
{
    kill_rounds(true, 33);
}

static void killed_without_a_journal_is_refused(void **state)
{
    kill_rounds(false, 22);
}

static void recovers_may_be_null(void **state)
{
    struct dp_error err = {0};
    assert_int_equal(open_as(*state, true, NULL, &err), DP_OK);
    form_close(*state, false);
    assert_int_equal(open_as(*state, true, NULL, &err), DP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: a process that has RocksDB's threads must not fork. */
        cmocka_unit_test(killed_with_a_journal_recovers),
        cmocka_unit_test(killed_without_a_journal_is_refused),
        cmocka_unit_test(every_transition),
        cmocka_unit_test_setup_teardown(recovers_may_be_null, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
