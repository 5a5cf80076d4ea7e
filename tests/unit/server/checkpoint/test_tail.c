/* Tails. Goal: the copied journal replays exactly the records that the cut wants: up to L under their own lsns (rows of the link
 * are ahead of A, and redo compares), behind L only what was lacking. Method: scripts of records in a real journal, of
 * several openings; an independent list of what is expected, compared byte for byte after an opening of the copy. */
#include "server/checkpoint/tail.h"
#include "server/journal/record.h"
#include "tests/lib/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENT   (128u << 10)
#define RUN       3u
#define RECORDS   512u
#define BYTES_MAX 40000u

struct kept_record {
    size_t size;
    char *bytes;
};

struct source {
    char top[64], from[80], to[80];
    struct dp_disk disk;
    struct dp_journal *journal;
    uint64_t openings;
    struct kept_record record[RECORDS + 1]; /* by lsn */
    struct kept_record wanted[RECORDS + 1]; /* of the copy, by lsn */
    uint64_t last, wanted_last;
    struct dp_copy_job *job;
    struct dp_manifest_tail tail;
    struct dp_error err;
};

static void open_source(struct source *s)
{
    const struct dp_journal_options options = {.disk = &s->disk,
                                               .segment_bytes = SEGMENT,
                                               .first_bytes = 64u << 10,
                                               .budget_bytes = 256 * SEGMENT,
                                               .secret = 7};
    assert_int_equal(dp_journal_open(&options, &s->journal, &s->err), DP_OK);
    s->openings++;
}

static struct source *source_new(void)
{
    struct source *s = calloc(1, sizeof *s);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(s->top, sizeof s->top, "%.30s/dp_tail_XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->top));
    (void)snprintf(s->from, sizeof s->from, "%s/journal", s->top);
    (void)snprintf(s->to, sizeof s->to, "%s/tail-0000", s->top);
    assert_int_equal(dp_disk_open(s->from, &s->disk, &s->err), DP_OK);
    s->job = dp_copy_job_new();
    open_source(s);
    return s;
}

static void remove_all(const char *path)
{
    char below[600];
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        (void)snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        (void)unlink(below);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(path);
}

static void source_free(struct source *s)
{
    dp_journal_close(&s->journal);
    dp_disk_close(&s->disk);
    remove_all(s->from);
    remove_all(s->to);
    assert_int_equal(rmdir(s->top), 0);
    for (uint32_t i = 0; i <= RECORDS; i++) {
        free(s->record[i].bytes);
        free(s->wanted[i].bytes);
    }
    dp_manifest_files_clear(&s->tail.files);
    dp_copy_job_free(&s->job);
    free(s);
}

/* ---- records */

static uint64_t append(struct source *s, const struct dp_record *record, const struct dp_request *push)
{
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    char head[DP_RECORD_HEAD_MAX];
    uint32_t n = dp_record_encode(record, push, head, pieces);
    uint64_t lsn = 0;
    enum dp_status st;
    do {
        st = dp_journal_append(s->journal, pieces, n, &lsn, &s->err);
        dp_journal_commit(s->journal);
    } while (st == DP_AGAIN || st == DP_BEHIND);
    assert_int_equal(st, DP_OK);
    assert_true(lsn <= RECORDS);
    struct kept_record *kept = &s->record[lsn];
    kept->bytes = malloc(BYTES_MAX + 400);
    for (uint32_t i = 0; i < n; kept->size += pieces[i++].bytes)
        memcpy(kept->bytes + kept->size, pieces[i].data, pieces[i].bytes);
    s->last = lsn;
    return lsn;
}

static uint64_t add(struct source *s, enum dp_record_kind kind, uint64_t stream, uint64_t number,
                    uint32_t run, uint64_t step)
{
    static char rows[BYTES_MAX];
    static struct dp_request push;
    uint32_t count = (uint32_t)(1 + number * 37 % 400);
    const struct dp_record record = {
        .kind = kind, .members = 1, .run = run, .step = step, .examples = 4, .rate = 0.5f, .dims = {8}};
    push = (struct dp_request){.kind = DP_REQUEST_PUSH, .stream = stream, .number = number, .sections = 1};
    memset(rows, (int)number, sizeof rows);
    push.section[0] = (struct dp_section){
        .table = 9, .rows = count, .keys = rows, .values = rows, .value_bytes = (size_t)count * 8 * 4};
    return append(s, &record, &push);
}

static uint64_t push(struct source *s, uint64_t stream, uint64_t number)
{
    return add(s, DP_RECORD_PUSH, stream, number, 0, 0);
}

static uint64_t keep(struct source *s, uint64_t number, uint64_t step)
{
    return add(s, DP_RECORD_KEPT_PUSH, 77, number, RUN, step);
}

static uint64_t close_step(struct source *s, uint64_t step)
{
    return add(s, DP_RECORD_CLOSE, 0, 0, RUN, step);
}

static uint64_t view(struct source *s)
{
    const struct dp_record record = {.kind = DP_RECORD_VIEW, .bytes = "members", .size = 7};
    return append(s, &record, NULL);
}

static void want(struct source *s, uint64_t lsn)
{
    struct kept_record *to = &s->wanted[++s->wanted_last];
    to->size = s->record[lsn].size;
    to->bytes = malloc(to->size);
    memcpy(to->bytes, s->record[lsn].bytes, to->size);
}

/* ---- copies */

static void cut(struct source *s, uint64_t after, uint64_t lsn, uint64_t until)
{
    s->job->after = after;
    s->job->lsn = lsn;
    s->job->until = until;
    s->wanted_last = after;
}

static void lacks(struct source *s, uint64_t stream, uint64_t number)
{
    struct dp_copy_job *job = s->job;
    job->missing = realloc(job->missing, (job->missing_count + 1) * sizeof job->missing[0]);
    job->missing[job->missing_count++] = (struct dp_copy_push){stream, number};
}

static enum dp_status copy_with(struct source *s, uint64_t segment_bytes)
{
    struct dp_tail_options options = {
        .from = s->from, .to = s->to, .job = s->job, .segment_bytes = segment_bytes};
    remove_all(s->to);
    dp_manifest_files_clear(&s->tail.files);
    s->err = (struct dp_error){0};
    return dp_tail_copy(&options, &s->tail, &s->err);
}

static enum dp_status copy(struct source *s)
{
    return copy_with(s, 0);
}

static enum dp_status compare(void *context, uint64_t lsn, const void *record, size_t bytes,
                              struct dp_error *err)
{
    struct source *s = context;
    const struct kept_record *wanted = &s->wanted[lsn];
    if (lsn > s->wanted_last || bytes != wanted->size || memcmp(record, wanted->bytes, bytes) != 0)
        return dp_fail(err, DP_INTERNAL, "record %u differs", (unsigned)lsn);
    return DP_OK;
}

static void see_file(void *context, const char *name)
{
    uint32_t *files = context;
    *files += strncmp(name, "journal-", 8) == 0;
}

/* The copy replays what is wanted, and goes on from there. */
static void expect_copy(struct source *s)
{
    struct dp_disk disk;
    struct dp_journal *journal = NULL;
    uint32_t files = 0;
    assert_int_equal(s->tail.last_lsn, s->wanted_last);
    assert_int_equal(s->tail.records, s->wanted_last - s->job->after);
    assert_true(s->tail.incarnation > s->openings);
    assert_int_equal(dp_disk_open(s->to, &disk, &s->err), DP_OK);
    assert_int_equal(disk.list(disk.self, see_file, &files, &s->err), DP_OK);
    assert_int_equal(files, s->tail.files.count); /* each is named, none is made ahead */
    const struct dp_journal_options options = {.disk = &disk,
                                               .replay_after = s->job->after,
                                               .incarnation = s->tail.incarnation,
                                               .must_be_there = true,
                                               .replay = compare,
                                               .replay_context = s};
    assert_int_equal(dp_journal_open(&options, &journal, &s->err), DP_OK);
    struct dp_journal_figures figures;
    dp_journal_figures(journal, &figures);
    assert_int_equal(figures.last_lsn, s->wanted_last);
    assert_int_equal(figures.replayed_records, s->tail.records);
    assert_int_equal(figures.replayed_bytes, s->tail.bytes);
    dp_journal_close(&journal);
    dp_disk_close(&disk);
}

static void up_to_the_cut_nothing_moves_and_behind_it_only_what_is_missing_comes(void **state)
{
    struct source *s = source_new();
    for (uint64_t i = 1; i <= 100; i++) {
        (void)push(s, 5, i); /* its lsn is i */
        if (i % 30 == 0) {
            dp_journal_close(&s->journal);
            open_source(s);
        }
    }
    cut(s, 20, 60, 95);
    for (uint64_t i = 21; i <= 60; i++)
        want(s, i);
    lacks(s, 5, 61);
    lacks(s, 5, 70);
    lacks(s, 5, 95);
    want(s, 61);
    want(s, 70);
    want(s, 95);
    assert_int_equal(copy(s), DP_OK);
    assert_int_equal(s->wanted_last, 63); /* renumbered behind the cut only */
    expect_copy(s);
    source_free(s);
}

static void a_run_that_is_not_synchronous_keeps_what_it_has(void **state)
{
    struct source *s = source_new();
    (void)keep(s, 1, 10); /* of a synchronous run before this one */
    (void)push(s, 5, 1);
    (void)keep(s, 2, 10);
    (void)view(s);
    (void)close_step(s, 10);
    cut(s, 0, 2, 5);
    want(s, 1);
    want(s, 2);
    assert_int_equal(copy(s), DP_OK);
    expect_copy(s);
    source_free(s);
}

static void a_push_that_is_not_there_is_named(void **state)
{
    struct source *s = source_new();
    for (uint64_t i = 1; i <= 10; i++)
        (void)push(s, 5, i);
    cut(s, 0, 5, 8);
    lacks(s, 5, 9); /* behind M */
    assert_int_equal(copy(s), DP_CORRUPT);
    assert_non_null(strstr(s->err.text, "push 9 of stream 0000000000000005"));
    assert_int_equal(s->tail.files.count, 0);
    source_free(s);
}

static void a_tail_may_be_empty(void **state)
{
    struct source *s = source_new();
    cut(s, 0, 0, 0);
    assert_int_equal(copy(s), DP_OK);
    expect_copy(s);
    for (uint64_t i = 1; i <= 10; i++)
        (void)push(s, 5, i);
    cut(s, 7, 7, 7);
    assert_int_equal(copy(s), DP_OK);
    expect_copy(s);
    cut(s, 7, 7, 10);
    assert_int_equal(copy(s), DP_OK);
    expect_copy(s);
    source_free(s);
}

static void a_tail_may_take_many_segments(void **state)
{
    struct source *s = source_new();
    for (uint64_t i = 1; i <= 300; i++)
        (void)push(s, 5, i);
    cut(s, 10, 200, 300);
    for (uint64_t i = 11; i <= 200; i++)
        want(s, i);
    for (uint64_t i = 201; i <= 300; i++)
        if (i % 3 == 0)
            lacks(s, 5, i);
    for (uint64_t i = 201; i <= 300; i++)
        if (i % 3 == 0)
            want(s, i);
    assert_int_equal(copy_with(s, 64u << 10), DP_OK);
    assert_true(s->tail.files.count > 10);
    expect_copy(s);
    assert_int_equal(copy(s), DP_OK);
    assert_int_equal(s->tail.files.count, 1);
    assert_true(s->tail.files.file[0].bytes < s->tail.bytes + s->tail.bytes / 8 + (128u << 10));
    expect_copy(s);
    source_free(s);
}

static void what_the_shard_did_not_hold_is_refused(void **state)
{
    struct source *s = source_new();
    for (uint64_t i = 1; i <= 300; i++)
        (void)push(s, 5, i);
    dp_journal_release(s->journal, 200);
    for (uint64_t i = 301; i <= 400; i++)
        (void)push(s, 5, i);
    cut(s, 100, 250, 350);
    assert_int_equal(copy(s), DP_CORRUPT);
    source_free(s);
}

static void a_copy_can_be_cancelled(void **state)
{
    struct source *s = source_new();
    atomic_bool cancelled = true;
    struct dp_pace pace = dp_pace_real();
    for (uint64_t i = 1; i <= 10; i++)
        (void)push(s, 5, i);
    cut(s, 0, 10, 10);
    pace.cancelled = &cancelled;
    struct dp_tail_options options = {.from = s->from, .to = s->to, .job = s->job, .pace = &pace};
    assert_int_equal(dp_tail_copy(&options, &s->tail, &s->err), DP_STOPPING);
    source_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_to_the_cut_nothing_moves_and_behind_it_only_what_is_missing_comes),
        cmocka_unit_test(a_run_that_is_not_synchronous_keeps_what_it_has),
        cmocka_unit_test(a_push_that_is_not_there_is_named),
        cmocka_unit_test(a_tail_may_be_empty),
        cmocka_unit_test(a_tail_may_take_many_segments),
        cmocka_unit_test(what_the_shard_did_not_hold_is_refused),
        cmocka_unit_test(a_copy_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
