/* What store.h promises, on each of its forms. */
#include "tests/unit/server/store/both_forms.h"

static void absent_rows_are_not_found(void **state)
{
    struct batch *batch = batch_new(5, ROW);
    batch_fill(batch, 1, 10, 3, 0);
    memset(batch->found, 1, 5);
    assert_int_equal(form_do(*state, batch_job(batch, DP_STORE_READ)), DP_OK);
    for (int i = 0; i < 5; i++)
        assert_false(batch->found[i]);
    batch_free(batch);
}

static void rows_are_read_as_written(void **state)
{
    write_rows(*state, 2000, 1, 0, 1);
    write_rows(*state, 7, 2, 0, 9); /* the same mixed keys in another table */
    expect_rows(*state, 2000, 1, 0, 1);
    expect_rows(*state, 7, 2, 0, 9);
}

static void found_and_absent_mix(void **state)
{
    struct batch *batch = batch_new(20, ROW);
    write_rows(*state, 10, 1, 0, 1);
    batch_fill(batch, 1, 5, 3, 0);
    assert_int_equal(form_do(*state, batch_job(batch, DP_STORE_READ)), DP_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(batch->found[i], i < 5);
    batch->count = 5;
    batch_expect(batch, 1);
    batch_free(batch);
}

static void later_write_wins(void **state)
{
    write_rows(*state, 100, 1, 0, 1);
    write_rows(*state, 50, 1, 25, 2);
    expect_rows(*state, 25, 1, 0, 1);
    expect_rows(*state, 50, 1, 25, 2);
    expect_rows(*state, 25, 1, 75, 1);
}

/* The highest and lowest keys there are, and a key twice in a read. */
static void keys_at_the_ends(void **state)
{
    static const struct dp_store_key keys[] = {
        {0, 0}, {0, UINT64_MAX}, {UINT32_MAX, 0}, {UINT32_MAX, UINT64_MAX}};
    struct batch *batch = batch_new(4, ROW);
    memcpy(batch->keys, keys, sizeof keys);
    memset(batch->bytes, 7, 4 * ROW);
    assert_int_equal(form_do(*state, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    batch->keys[2] = batch->keys[1];
    assert_int_equal(form_do(*state, batch_job(batch, DP_STORE_READ)), DP_OK);
    for (int i = 0; i < 4; i++)
        assert_true(batch->found[i] && *(unsigned char *)batch->rows[i] == 7);
    batch_free(batch);
}

static void empty_jobs_complete(void **state)
{
    struct batch *batch = batch_new(0, ROW);
    struct dp_store_job marks = marks_job(NULL, 0);
    assert_int_equal(form_do(*state, batch_job(batch, DP_STORE_READ)), DP_OK);
    assert_int_equal(form_do(*state, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    assert_int_equal(form_do(*state, &marks), DP_OK);
    batch_free(batch);
}

static void another_length_is_corrupt(void **state)
{
    struct batch *batch = batch_new(3, ROW - 4);
    struct dp_store_job *job = NULL;
    write_rows(*state, 3, 1, 0, 1);
    batch_fill(batch, 1, 0, 3, 0);
    job = batch_job(batch, DP_STORE_READ);
    assert_int_equal(form_do(*state, job), DP_CORRUPT);
    assert_int_equal(job->error.status, DP_CORRUPT);
    assert_non_null(strstr(job->error.text, "144 bytes, expected 140"));
    expect_rows(*state, 3, 1, 0, 1); /* a failed read fails nothing else */
    batch_free(batch);
}

/* Reads of many keys may be done in parts: what fails in any of them fails the job. */
static void one_bad_row_of_many_is_corrupt(void **state)
{
    static const uint32_t places[] = {0, 1, 1499, 1500, 2999, 4999};
    struct batch *read = batch_new(5000, ROW);
    write_rows(*state, 5000, 1, 0, 1);
    batch_fill(read, 1, 0, 3, 0);
    for (uint32_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        read->row_bytes[places[i]] = ROW - 4;
        assert_int_equal(form_do(*state, batch_job(read, DP_STORE_READ)), DP_CORRUPT);
        assert_non_null(strstr(read->job.error.text, "144 bytes, expected 140"));
        read->row_bytes[places[i]] = ROW;
    }
    expect_rows(*state, 5000, 1, 0, 1);
    batch_free(read);
}

/* Every length around those at which a read may be cut into parts, all of them under way at once. */
static void reads_of_every_length(void **state)
{
    static const uint32_t lens[] = {1,    2,    511,  512,  513,  1023, 1024, 1025, 1026, 1535, 1536,
                                    1537, 2047, 2048, 2049, 3000, 4095, 4096, 4097, 5000, 8191, 8193};
    enum { LENS = sizeof lens / sizeof lens[0] };
    struct batch *reads[LENS];
    write_rows(*state, 9000, 1, 0, 1);
    for (uint32_t i = 0; i < LENS; i++) {
        reads[i] = batch_new(lens[i], ROW);
        batch_fill(reads[i], 1, i, 3, 0);
        form_submit(*state, batch_job(reads[i], DP_STORE_READ));
    }
    for (uint32_t i = 0; i < LENS; i++)
        assert_int_equal(form_wait(*state)->status, DP_OK);
    for (uint32_t i = 0; i < LENS; i++) {
        batch_expect(reads[i], 1);
        batch_free(reads[i]);
    }
}

/* One read of the test below: the rows that it finds must be of a version between these. */
struct dated_read {
    struct batch *batch;
    uint32_t least; /* completed when it was submitted */
};

static void submit_dated(struct form *form, struct dated_read *read, uint32_t least)
{
    read->least = least;
    batch_fill(read->batch, 1, 0, 1, 0);
    form_submit(form, batch_job(read->batch, DP_STORE_READ));
}

static void expect_dated(const struct dated_read *read, uint32_t most)
{
    assert_int_equal(read->batch->job.status, DP_OK);
    for (uint32_t i = 0; i < read->batch->count; i++) {
        const unsigned char *row = read->batch->rows[i];
        assert_int_equal(read->batch->found[i], 1);
        assert_true(row[0] >= read->least && row[0] <= most);
        assert_memory_equal(row, row + 1, ROW - 1); /* one version all through */
    }
}

/* The same 3,000 rows written over and over, while reads of some and of all of them are under way: each sees
 * what had completed when it was submitted, or newer. */
static void reads_see_the_writes_completed_before(void **state)
{
    enum { WRITES = 60, READS = 6, LEN = 3000 };
    struct form *form = *state;
    struct batch *write = batch_new(LEN, ROW);
    struct dated_read reads[READS];
    uint32_t completed = 0, under_way = 0, seen = 0;
    for (uint32_t i = 0; i < READS; i++)
        reads[i].batch = batch_new(i % 2 ? 10 : LEN, ROW);
    batch_fill(write, 1, 0, 1, 0);
    memset(write->bytes, 1, (size_t)LEN * ROW);
    assert_int_equal(form_do(form, batch_job(write, DP_STORE_WRITE)), DP_OK);
    completed = 1;
    memset(write->bytes, 2, (size_t)LEN * ROW);
    form_submit(form, batch_job(write, DP_STORE_WRITE));
    for (; under_way < READS; under_way++)
        submit_dated(form, &reads[under_way], completed);
    for (under_way++; under_way > 0;) {
        struct dp_store_job *job = form_wait(form);
        bool more = completed < WRITES;
        under_way--;
        if (job == &write->job) {
            assert_int_equal(job->status, DP_OK);
            completed++;
            memset(write->bytes, (int)completed + 1, (size_t)LEN * ROW);
            if (more)
                form_submit(form, batch_job(write, DP_STORE_WRITE));
            under_way += more;
        }
        for (uint32_t i = 0; i < READS; i++)
            if (job == &reads[i].batch->job) {
                expect_dated(&reads[i], completed + 1);
                seen++;
                if (more)
                    submit_dated(form, &reads[i], completed);
                under_way += more;
            }
    }
    assert_true(seen >= READS && completed >= WRITES);
    for (uint32_t i = 0; i < READS; i++)
        batch_free(reads[i].batch);
    batch_free(write);
}

/* One row, written over and over with all writes under way at once; a read submitted after all completed. */
static void writes_become_visible_in_order(void **state)
{
    struct form *form = *state;
    struct batch *writes[40];
    for (uint32_t i = 0; i < 40; i++) {
        writes[i] = batch_new(1 + i % 3, ROW);
        batch_fill(writes[i], 1, 0, 3, i);
        form_submit(form, batch_job(writes[i], DP_STORE_WRITE));
    }
    for (uint32_t i = 0; i < 40; i++) {
        struct dp_store_job *job = form_wait(form);
        assert_ptr_equal(job, &writes[i]->job);
        assert_int_equal(job->status, DP_OK);
    }
    assert_null(form->store.completed(form->store.self));
    expect_rows(form, 1, 1, 0, 39);
    expect_rows(form, 1, 1, 1, 38);
    for (uint32_t i = 0; i < 40; i++)
        batch_free(writes[i]);
}

/* Many writes under way at once: some follow each other, one begins where the last ended, some lie over others, one is empty, and
 * another table and marks stand between. Each has its effect, in order. */
static void writes_under_way_together_keep_their_order(void **state)
{
    struct form *form = *state;
    static const struct {
        uint32_t count, table, from, version;
    } writes[] = {{3000, 1, 0, 1}, {2000, 1, 3000, 1}, {1, 1, 4999, 2},   {500, 1, 5000, 1}, {0, 1, 0, 1},
                  {10, 2, 0, 1},   {1000, 1, 0, 3},    {500, 1, 1000, 3}, {100, 1, 1400, 4}};
    struct batch *batch[sizeof writes / sizeof writes[0]];
    const struct dp_store_mark mark = mark_text("between", "them");
    struct dp_store_job marks = marks_job(&mark, 1);
    size_t n = sizeof writes / sizeof writes[0];
    for (size_t i = 0; i < n; i++) {
        batch[i] = batch_new(writes[i].count, ROW);
        batch_fill(batch[i], writes[i].table, writes[i].from, 3, writes[i].version);
        form_submit(form, batch_job(batch[i], DP_STORE_WRITE));
        if (i == 6)
            form_submit(form, &marks);
    }
    for (size_t i = 0; i <= n; i++)
        assert_int_equal(form_wait(form)->status, DP_OK);
    for (size_t i = 0; i < n; i++)
        batch_free(batch[i]);
    expect_rows(form, 1000, 1, 0, 3);
    expect_rows(form, 400, 1, 1000, 3);
    expect_rows(form, 100, 1, 1400, 4);
    expect_rows(form, 3499, 1, 1500, 1);
    expect_rows(form, 1, 1, 4999, 2);
    expect_rows(form, 500, 1, 5000, 1);
    expect_rows(form, 10, 2, 0, 1);
}

static void full_is_again_and_passes(void **state)
{
    struct form *form = *state;
    enum { MANY = 5000 };
    struct dp_store_job *jobs = calloc(MANY, sizeof *jobs);
    uint32_t taken = 0;
    enum dp_status st = DP_OK;
    assert_non_null(jobs);
    for (; taken < MANY; taken++) {
        jobs[taken] = (struct dp_store_job){.kind = DP_STORE_READ, .owner = &jobs[taken]};
        st = form->store.submit(form->store.self, &jobs[taken]);
        if (st != DP_OK)
            break;
    }
    assert_int_equal(st, DP_AGAIN);
    assert_true(taken >= 64);
    struct dp_store_job *first = form_wait(form);
    assert_ptr_equal(first->owner, first);
    form_submit(form, &jobs[taken]);
    for (uint32_t i = 0; i < taken; i++)
        assert_int_equal(form_wait(form)->status, DP_OK);
    assert_null(form->store.completed(form->store.self));
    free(jobs);
}

static void marks_are_visited_in_order(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    struct seen seen = {.stop_at = 2};
    expect_marks(form, "", "");
    put_marks(form);
    expect_marks(form, "t/", "t/a=1 t/b=two ");
    expect_marks(form, "", "t=0 t/a=1 t/b=two u= \xff=z ");
    expect_marks(form, "v", "");
    assert_int_equal(form->store.visit_marks(form->store.self, "", 0, note, &seen, &err), DP_DATA);
    assert_string_equal(err.text, "enough");
    assert_int_equal(seen.len, 2);
}

struct rows_seen {
    struct dp_store_key last;
    uint64_t len, stop_at, wrong;
    const struct batch *first, *second; /* what is stored; second is the newer */
};

static const void *expected_row(const struct rows_seen *seen, struct dp_store_key key)
{
    const struct batch *batches[] = {seen->second, seen->first};
    for (int b = 0; b < 2; b++)
        for (uint32_t i = 0; batches[b] && i < batches[b]->count; i++)
            if (batches[b]->keys[i].table == key.table && batches[b]->keys[i].mixed == key.mixed)
                return batches[b]->rows[i];
    return NULL;
}

static enum dp_status note_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct rows_seen *seen = context;
    struct dp_store_key last = seen->last;
    bool above = key.table > last.table || (key.table == last.table && key.mixed > last.mixed);
    const void *expected = expected_row(seen, key);
    seen->wrong += seen->len > 0 && !above;
    seen->wrong += row_bytes != ROW || !expected || memcmp(row, expected, ROW) != 0;
    seen->last = key;
    return ++seen->len == seen->stop_at ? dp_fail(err, DP_DATA, "enough") : DP_OK;
}

static void expect_visit(struct form *form, const struct batch *first, const struct batch *second,
                         uint64_t len)
{
    struct dp_error err = {0};
    struct rows_seen seen = {.first = first, .second = second};
    assert_int_equal(form->store.visit_rows(form->store.self, note_row, &seen, &err), DP_OK);
    assert_int_equal(seen.len, len);
    assert_int_equal(seen.wrong, 0);
}

/* Two tables, the ends of the key space, 300 rows overwritten, marks beside them; again after a reopen. */
static void rows_are_visited_in_order(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    struct batch *first = batch_new(1500, ROW), *second = batch_new(500, ROW);
    expect_visit(form, NULL, NULL, 0);
    batch_fill(first, 1, 0, 0x0103050709u, 1);
    for (uint32_t i = 1000; i < 1500; i++)
        first->keys[i] = (struct dp_store_key){i == 1499 ? UINT32_MAX : 300, (i - 1000) * 77};
    first->keys[1499].mixed = UINT64_MAX;
    batch_fill(second, 1, 700, 0x0103050709u, 2); /* 300 keys of first, 200 of its own */
    assert_int_equal(form_do(form, batch_job(first, DP_STORE_WRITE)), DP_OK);
    put_marks(form);
    expect_visit(form, first, NULL, 1500);
    assert_int_equal(form_do(form, batch_job(second, DP_STORE_WRITE)), DP_OK);
    expect_visit(form, first, second, 1700);
    form_close(form, true);
    assert_int_equal(form_open(form, &err), DP_OK);
    expect_visit(form, first, second, 1700);
    batch_free(first);
    batch_free(second);
}

static void visit_of_rows_ends_when_told(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    struct rows_seen seen = {.stop_at = 2};
    write_rows(form, 10, 1, 0, 1);
    assert_int_equal(form->store.visit_rows(form->store.self, note_row, &seen, &err), DP_DATA);
    assert_string_equal(err.text, "enough");
    assert_int_equal(seen.len, 2);
}

/* Without wakes: wait alone must lead to every job, and return with none under way. */
static void wait_leads_to_completed_jobs(void **state)
{
    struct form *form = *state;
    struct batch *reads[3];
    if (form->fake)
        dp_fake_store_hold(form->fake, true);
    for (int i = 0; i < 3; i++) {
        reads[i] = batch_new(2000, ROW);
        batch_fill(reads[i], 1, 0, 1, 0);
        form_submit(form, batch_job(reads[i], DP_STORE_READ));
    }
    for (int seen = 0, waits = 0; seen < 3; seen += form->store.completed(form->store.self) != NULL) {
        form->store.wait(form->store.self);
        assert_true(++waits < 60);
    }
    form->store.wait(form->store.self);
    assert_null(form->store.completed(form->store.self));
    for (int i = 0; i < 3; i++)
        batch_free(reads[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(absent_rows_are_not_found),
        ON_BOTH(rows_are_read_as_written),
        ON_BOTH(found_and_absent_mix),
        ON_BOTH(later_write_wins),
        ON_BOTH(keys_at_the_ends),
        ON_BOTH(empty_jobs_complete),
        ON_BOTH(another_length_is_corrupt),
        ON_BOTH(one_bad_row_of_many_is_corrupt),
        ON_BOTH(reads_of_every_length),
        ON_BOTH(reads_see_the_writes_completed_before),
        ON_BOTH(writes_become_visible_in_order),
        ON_BOTH(writes_under_way_together_keep_their_order),
        ON_BOTH(full_is_again_and_passes),
        ON_BOTH(marks_are_visited_in_order),
        ON_BOTH(rows_are_visited_in_order),
        ON_BOTH(visit_of_rows_ends_when_told),
        ON_BOTH(wait_leads_to_completed_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
