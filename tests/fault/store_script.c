/* Store script: what test_store_errors lets a store do while calls of it fail, and what must be there afterwards.
 *     store_script live  DIRECTORY ACKS exit|close     the script, under the failing library
 *     store_script open  DIRECTORY ACKS                under it, too: opens and closes
 *     store_script check DIRECTORY ACKS                on a sound disk: opens, and nothing that was acknowledged is missing
 * Script    Rows of three groups in turn, each write a new version of all rows of its group, marks between them: enough files for
 *           a compaction, enough marks for a flush; then a clean close, a second opening and some more.
 * After a failure the rest is still tried, as a server's next write-back cycles would.
 * ACKS      What was sent and what completed DP_OK, one record each. */
#include "tests/unit/server/store/form.h"

#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS    3u
#define ROWS      40u
#define ROW_BYTES 64u
#define WRITES    21u /* of the first life: over the 16 files at which RocksDB compacts */
#define LARGE     (400u << 10)
#define LARGES    4u /* over the write buffer of marks */
#define STEPS     (WRITES + LARGES + 4u)
#define TRIES     3u /* of a job that found the disk full */

enum what { SENT, ACKED };

struct entry {
    uint32_t what, step;
};

struct script {
    struct form *form;
    struct batch *batch;
    char *value;
    int acks;
    bool failed;
};

static bool is_marks(uint32_t step)
{
    return step % 5 == 4 || (step >= WRITES && step < WRITES + LARGES);
}

static void note(const struct script *script, enum what what, uint32_t step)
{
    struct entry entry = {what, step};
    if (write(script->acks, &entry, sizeof entry) != (ssize_t)sizeof entry)
        abort();
}

static struct dp_store_mark mark_of(struct script *script, uint32_t step)
{
    size_t bytes = step >= WRITES && step < WRITES + LARGES ? LARGE : sizeof step;
    memset(script->value, 'm', bytes);
    memcpy(script->value, &step, sizeof step);
    return (struct dp_store_mark){"mark", script->value, 4, bytes};
}

static void do_step(struct script *script, uint32_t step)
{
    struct dp_store_mark mark;
    struct dp_store_job job, *at = &job;
    enum dp_status st = DP_FULL;
    if (is_marks(step)) {
        mark = mark_of(script, step);
        job = marks_job(&mark, 1);
    } else {
        batch_fill(script->batch, 1 + step % GROUPS, 0, 3, step);
        at = batch_job(script->batch, DP_STORE_WRITE);
    }
    note(script, SENT, step);
    for (uint32_t i = 0; i < TRIES && st == DP_FULL; i++)
        st = form_do(script->form, at);
    if (st == DP_OK)
        note(script, ACKED, step);
    else if (!script->failed)
        printf("step %u: %s\n", step, at->error.text);
    script->failed = script->failed || st != DP_OK;
}

/* false: it could not be opened. */
static bool open_it(struct script *script)
{
    struct dp_error err = {0};
    enum dp_status st = form_open(script->form, &err);
    if (st != DP_OK)
        printf("open: %d %s\n", (int)st, err.text);
    return st == DP_OK;
}

static void close_it(struct script *script, bool clean)
{
    struct dp_error err = {0};
    if (clean && dp_rocks_store_mark_clean(&script->form->store, &err) != DP_OK) {
        printf("mark clean: %s\n", err.text);
        script->failed = true;
    }
    form_close(script->form, false);
}

static void live(struct script *script, bool closes)
{
    uint32_t step = 0;
    if (!open_it(script))
        return;
    while (step < WRITES + LARGES + 1)
        do_step(script, step++);
    if (!script->failed) {
        close_it(script, true);
        if (script->failed || !open_it(script))
            return;
        while (step < STEPS)
            do_step(script, step++);
    }
    (void)fflush(stdout);
    if (!closes)
        _exit(0);
    close_it(script, true);
}

/* ---- check */

struct want {
    uint32_t least[GROUPS + 1], most[GROUPS + 1]; /* versions + 1 of each group and of the mark; 0: none */
};

static struct want read_acks(const struct script *script)
{
    struct want want = {0};
    struct entry entry;
    while (read(script->acks, &entry, sizeof entry) == (ssize_t)sizeof entry) {
        uint32_t which = is_marks(entry.step) ? GROUPS : entry.step % GROUPS;
        uint32_t *to = entry.what == ACKED ? want.least : want.most;
        to[which] = entry.step + 1;
    }
    return want;
}

/* The version of the rows that were read: of all the same. */
static uint32_t version_of(struct batch *batch, uint32_t table, uint32_t most)
{
    struct batch *like = batch_new(ROWS, ROW_BYTES);
    uint32_t found = 0;
    for (uint32_t i = 0; i < ROWS; i++)
        found += batch->found[i];
    uint32_t version = 0;
    for (uint32_t v = 1; found == ROWS && v <= most && version == 0; v++) {
        batch_fill(like, table, 0, 3, v - 1);
        if (memcmp(like->bytes, batch->bytes, (size_t)ROWS * ROW_BYTES) == 0)
            version = v;
    }
    batch_free(like);
    return found == 0 ? 0 : version > 0 ? version : UINT32_MAX;
}

static enum dp_status see_mark(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    uint32_t *version = context;
    if (mark->value_bytes >= sizeof *version) {
        memcpy(version, mark->value, sizeof *version);
        ++*version;
    }
    return DP_OK;
}

static int look(struct script *script, const struct want *want)
{
    struct form *form = script->form;
    struct dp_error err = {0};
    int wrong = 0;
    for (uint32_t which = 0; which <= GROUPS; which++) {
        uint32_t version = 0;
        enum dp_status st;
        if (which == GROUPS) {
            st = form->store.visit_marks(form->store.self, "mark", 4, see_mark, &version, &err);
        } else {
            batch_fill(script->batch, 1 + which, 0, 3, 0);
            st = form_do(form, batch_job(script->batch, DP_STORE_READ));
            err = script->batch->job.error;
            version = version_of(script->batch, 1 + which, want->most[which]);
        }
        if (st == DP_OK && version >= want->least[which] && version <= want->most[which])
            continue;
        printf("%u: version %d; %d was acknowledged, %d was sent; %s\n", which, (int)version - 1,
               (int)want->least[which] - 1, (int)want->most[which] - 1, st == DP_OK ? "" : err.text);
        wrong = 1;
    }
    return wrong;
}

/* It opens, has what it must, takes more, is closed cleanly and has that, too. */
static int check(struct script *script)
{
    struct want want = read_acks(script);
    if (!open_it(script))
        return 1;
    int wrong = look(script, &want);
    script->acks = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (uint32_t step = STEPS; step < STEPS + 5; step++) {
        do_step(script, step);
        uint32_t which = is_marks(step) ? GROUPS : step % GROUPS;
        want.least[which] = want.most[which] = step + 1;
    }
    close_it(script, true);
    if (script->failed || !open_it(script))
        return 1;
    wrong = wrong || look(script, &want);
    close_it(script, true);
    return wrong;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    struct script script = {.form = form_new(true), .batch = batch_new(ROWS, ROW_BYTES)};
    struct form *form = script.form;
    temp_directory_remove(form->directory);
    (void)snprintf(form->directory, sizeof form->directory, "%s", argv[2]);
    form->options.journaled = true;
    script.value = malloc(LARGE);
    script.acks = open(argv[3], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (!script.value || script.acks < 0)
        return 2;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(argv[1], "check") == 0)
        return check(&script);
    if (strcmp(argv[1], "open") == 0) {
        if (open_it(&script))
            close_it(&script, false);
        return 0;
    }
    live(&script, argc > 4 && strcmp(argv[4], "close") == 0);
    return 0;
}
