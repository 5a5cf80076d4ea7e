/* The stage of the journal: what counts as written. A record counts when its last byte has left the stage, however many chunks
 * it lies in, and whichever of them the commit thread finds closed. The test looks inside the journal, because the schedule that
 * it needs, a round between two chunks of one record, is the commit thread's and cannot be forced from outside. */
#include "server/journal/journal_inner.h"
#include "tests/lib/sim_disk.h"
#include "tests/lib/test.h"

#include <stdlib.h>

#define SEGMENT     (16u << 20)
#define RECORD_MAX  (3u << 20)
#define RECORDS_MAX 64u

struct stage_bench {
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_journal *journal;
    uint8_t *bytes;
    uint64_t end[RECORDS_MAX + 1]; /* of the record with that lsn, in the segment */
    uint64_t last, random;
};

static uint64_t draw(struct stage_bench *b, uint64_t below)
{
    b->random = b->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (b->random >> 33) % below;
}

static void open_bench(struct stage_bench *b, uint64_t seed)
{
    struct dp_error err = {0};
    *b = (struct stage_bench){.sim = dp_sim_disk_new(seed), .random = seed, .bytes = calloc(1, RECORD_MAX)};
    b->disk = dp_sim_disk_interface(b->sim);
    const struct dp_journal_options options = {.disk = &b->disk,
                                               .durability = DP_DURABILITY_MACHINE,
                                               .segment_bytes = SEGMENT,
                                               .first_bytes = SEGMENT,
                                               .budget_bytes = 3u * SEGMENT};
    assert_non_null(b->bytes);
    if (dp_journal_open(&options, &b->journal, &err) != DP_OK)
        fail_msg("%s", err.text);
}

static void close_bench(struct stage_bench *b)
{
    dp_journal_close(&b->journal);
    dp_sim_disk_free(&b->sim);
    free(b->bytes);
}

static void append(struct stage_bench *b, size_t bytes)
{
    struct dp_error err = {0};
    struct dp_journal_piece piece = {b->bytes, bytes};
    assert_int_equal(dp_journal_append(b->journal, &piece, 1, &b->last, &err), DP_OK);
    assert_true(b->last <= RECORDS_MAX);
    b->end[b->last] = b->journal->stage.end;
}

static bool has_closed(const struct dp_journal_stage *stage)
{
    return stage->count > (uint32_t)stage->filling;
}

/* Some of the closed chunks, as the commit thread finds them in the middle of a put. */
static void write_closed(struct stage_bench *b)
{
    (void)pthread_mutex_lock(&b->journal->lock);
    assert_int_equal(dp_journal_stage_write(b->journal), DP_OK);
    (void)pthread_mutex_unlock(&b->journal->lock);
}

static void close_chunk(struct stage_bench *b)
{
    (void)pthread_mutex_lock(&b->journal->lock);
    dp_journal_stage_close(b->journal);
    (void)pthread_mutex_unlock(&b->journal->lock);
}

/* The lsn up to which whole records lie in front of what is still in the stage. */
static uint64_t written_by_bytes(const struct stage_bench *b)
{
    const struct dp_journal_stage *stage = &b->journal->stage;
    uint64_t upto = stage->count > 0 ? stage->chunk[stage->first].at : stage->end, lsn = 0;
    while (lsn < b->last && b->end[lsn + 1] <= upto)
        lsn++;
    return lsn;
}

static void a_record_in_two_chunks_counts_with_its_last_part(void **state)
{
    struct stage_bench b;
    open_bench(&b, 1);
    append(&b, 1000);
    append(&b,
           DP_JOURNAL_CHUNK_BYTES + 1000); /* the end of the first chunk and the beginning of the second */
    append(&b, 1000);
    assert_int_equal(b.journal->stage.count, 2);
    assert_int_equal(dp_journal_stage_written(b.journal), 0);
    write_closed(&b);
    assert_int_equal(dp_journal_stage_written(b.journal), 1);
    close_chunk(&b);
    write_closed(&b);
    assert_int_equal(dp_journal_stage_written(b.journal), 3);
    close_bench(&b);
}

static void what_counts_as_written_is_written(void **state)
{
    uint32_t parts = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct stage_bench b;
        open_bench(&b, seed);
        while (b.last < RECORDS_MAX && b.journal->stage.end + RECORD_MAX + DP_JOURNAL_PAGE < SEGMENT) {
            uint64_t what = draw(&b, 4);
            if (what == 0)
                append(&b, draw(&b, 4) ? draw(&b, 3000) : draw(&b, RECORD_MAX));
            else if (what == 1) /* a record that ends where its chunk ends, or just behind it */
                append(&b, DP_JOURNAL_CHUNK_BYTES - 64 * draw(&b, 4) - 64);
            else if (what == 2 && has_closed(&b.journal->stage))
                write_closed(&b);
            else if (what == 3)
                close_chunk(&b);
            uint64_t written = dp_journal_stage_written(b.journal);
            if (written != written_by_bytes(&b))
                fail_msg("seed %u: of %u records %u count as written, and %u are", (unsigned)seed,
                         (unsigned)b.last, (unsigned)written, (unsigned)written_by_bytes(&b));
            const struct dp_journal_stage *stage = &b.journal->stage;
            parts += stage->count > 0 && written < b.last && b.end[written] < stage->chunk[stage->first].at;
        }
        close_bench(&b);
    }
    assert_true(parts > 20); /* a record was seen half written */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_record_in_two_chunks_counts_with_its_last_part),
                                       cmocka_unit_test(what_counts_as_written_is_written)};
    return cmocka_run_group_tests_name("journal stage", tests, NULL, NULL);
}
