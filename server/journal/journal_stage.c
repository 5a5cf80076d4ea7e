#include "server/journal/journal_stage.h"

#include "common/base/blocking.h"
#include "common/base/memory.h"
#include "server/journal/journal_inner.h"

#include <stdlib.h>
#include <string.h>

/* ---- what all files of the journal use (journal_inner.h) */

void dp_journal_wake(const struct dp_journal *journal)
{
    if (journal->options.commit_thread && journal->options.wake)
        journal->options.wake(journal->options.wake_context);
}

void dp_journal_poison(struct dp_journal *journal, const struct dp_error *why)
{
    (void)pthread_mutex_lock(&journal->lock);
    if (atomic_load(&journal->poison) == DP_OK) {
        journal->why = *why;
        atomic_store(&journal->poison, (int)why->status);
    }
    (void)pthread_cond_broadcast(&journal->written);
    (void)pthread_mutex_unlock(&journal->lock);
}

uint64_t dp_journal_kept_bytes(const struct dp_journal *journal)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < journal->count; i++)
        bytes += journal->segments[i].bytes;
    return bytes;
}

void dp_journal_page_of(const struct dp_journal *journal, const struct dp_journal_segment *segment,
                        uint64_t synced_lsn, uint8_t to[DP_JOURNAL_PAGE])
{
    struct dp_journal_page page = {
        .version = DP_JOURNAL_VERSION,
        .number = segment->number,
        .incarnation = journal->incarnation,
        .first_lsn = segment->first_lsn,
        .synced_lsn = synced_lsn,
        .bytes = segment->bytes,
        .secret = journal->secret,
    };
    dp_journal_page_put(to, &page);
}

void dp_journal_mark_of(const struct dp_journal *journal, enum dp_journal_kind kind, uint64_t payload,
                        uint8_t to[DP_JOURNAL_HEADER])
{
    struct dp_journal_header header = {
        .kind = kind,
        .bytes = payload,
        .lsn = journal->last,
        .incarnation = journal->incarnation,
        .synced_lsn = atomic_load(&journal->synced),
        .secret = journal->secret,
    };
    dp_journal_header_put(to, &header);
}

/* ---- the stage */

enum dp_status dp_journal_stage_init(struct dp_journal_stage *stage, struct dp_error *err)
{
    stage->memory = dp_pages_alloc(DP_JOURNAL_CHUNKS * DP_JOURNAL_CHUNK_BYTES);
    if (!stage->memory)
        return dp_fail(err, DP_NOMEM, "journal: no memory for its buffers");
    for (uint32_t i = 0; i < DP_JOURNAL_CHUNKS; i++)
        stage->unused[i] = stage->memory + (DP_JOURNAL_CHUNKS - 1 - i) * DP_JOURNAL_CHUNK_BYTES;
    stage->unused_count = DP_JOURNAL_CHUNKS;
    return DP_OK;
}

/* Whether the chunk is in the stage's own memory; others are for one large record. */
static bool is_kept(const struct dp_journal_stage *stage, const uint8_t *data)
{
    uintptr_t at = (uintptr_t)data, from = (uintptr_t)stage->memory;
    return at >= from && at < from + DP_JOURNAL_CHUNKS * DP_JOURNAL_CHUNK_BYTES;
}

static void give_back(struct dp_journal_stage *stage, uint8_t *data)
{
    if (is_kept(stage, data))
        stage->unused[stage->unused_count++] = data;
    else
        free(data);
}

void dp_journal_stage_clear(struct dp_journal_stage *stage)
{
    for (uint32_t i = 0; i < stage->unused_count; i++)
        if (!is_kept(stage, stage->unused[i]))
            free(stage->unused[i]);
    for (uint32_t i = 0; i < stage->count; i++) { /* unwritten chunks: the journal is poisoned */
        uint8_t *data = stage->chunk[(stage->first + i) % DP_JOURNAL_RING].data;
        if (!is_kept(stage, data))
            free(data);
    }
    dp_pages_free(stage->memory, DP_JOURNAL_CHUNKS * DP_JOURNAL_CHUNK_BYTES);
    *stage = (struct dp_journal_stage){0};
}

uint64_t dp_journal_stage_written(const struct dp_journal *journal)
{
    const struct dp_journal_stage *stage = &journal->stage;
    return stage->count > 0 ? stage->chunk[stage->first].first_lsn - 1 : journal->last;
}

void dp_journal_stage_close(struct dp_journal *journal)
{
    struct dp_journal_stage *stage = &journal->stage;
    if (!stage->filling || stage->putting)
        return;
    struct dp_journal_chunk *chunk = stage->last;
    size_t gap = (size_t)dp_journal_page_up(chunk->bytes) - chunk->bytes;
    if (gap > 0) {
        dp_journal_mark_of(journal, DP_JOURNAL_PAD, gap - DP_JOURNAL_HEADER, chunk->data + chunk->bytes);
        memset(chunk->data + chunk->bytes + DP_JOURNAL_HEADER, 0, gap - DP_JOURNAL_HEADER);
    }
    chunk->bytes += gap;
    stage->end += gap;
    stage->filling = false;
    stage->closed++;
}

static struct dp_journal_segment *segment_of(struct dp_journal *journal, uint64_t number)
{
    size_t i = journal->count;
    while (i > 0 && journal->segments[i - 1].number != number)
        i--;
    DP_ASSERT(i > 0); /* the segment is kept, since it has unsynced records */
    return &journal->segments[i - 1];
}

enum dp_status dp_journal_stage_write(struct dp_journal *journal)
{
    struct dp_journal_stage *stage = &journal->stage;
    struct dp_disk_piece pieces[DP_JOURNAL_CHUNKS];
    uint32_t n = 0, closed = stage->count - stage->filling;
    struct dp_journal_chunk first = stage->chunk[stage->first];
    DP_ASSERT(closed > 0 && !stage->writing);
    for (; n < closed && n < DP_JOURNAL_CHUNKS; n++) {
        const struct dp_journal_chunk *chunk = &stage->chunk[(stage->first + n) % DP_JOURNAL_RING];
        if (chunk->number != first.number)
            break;
        pieces[n] = (struct dp_disk_piece){chunk->data, chunk->bytes};
    }
    DP_ASSERT(first.at % DP_JOURNAL_PAGE == 0); /* never rewrite a page that may be durable */
    stage->writing = true;
    (void)pthread_mutex_unlock(&journal->lock);
    struct dp_error why = {0};
    /* Mode process: the shard's turn may write, since the bytes go to the page cache. */
    bool cached = journal->options.durability == DP_DURABILITY_PROCESS;
    bool before = cached && dp_blocking_set(true);
    enum dp_status st = journal->disk->write(journal->disk->self, first.file, first.at, pieces, n, &why);
    if (cached)
        (void)dp_blocking_set(before);
    if (st != DP_OK) {
        (void)dp_wrap(&why, st, "journal: cannot write the appended records");
        dp_journal_poison(journal, &why);
    }
    (void)pthread_mutex_lock(&journal->lock);
    stage->writing = false;
    if (st == DP_OK) {
        segment_of(journal, first.number)->dirty = true;
        for (uint32_t i = n; i > 0; i--)
            give_back(stage, stage->chunk[(stage->first + i - 1) % DP_JOURNAL_RING].data);
        stage->first = (stage->first + n) % DP_JOURNAL_RING;
        stage->count -= n;
        stage->written += n;
    }
    (void)pthread_cond_broadcast(&journal->written);
    return st;
}

/* Whether a record of `need` chunks may be put: it uses at most half of the stage's own chunks, and extra
 * ones beyond. */
static bool has_room(const struct dp_journal_stage *stage, uint64_t need)
{
    uint64_t kept = need < DP_JOURNAL_CHUNKS / 2 ? need : DP_JOURNAL_CHUNKS / 2;
    return stage->unused_count >= kept && stage->count + need <= DP_JOURNAL_RING;
}

void dp_journal_stage_trim(struct dp_journal_stage *stage)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < stage->unused_count; i++)
        if (is_kept(stage, stage->unused[i]))
            stage->unused[left++] = stage->unused[i];
        else
            free(stage->unused[i]);
    stage->unused_count = left;
}

/* Allocates the extra chunks of a record that is larger than half the stage. */
static enum dp_status take_more(struct dp_journal_stage *stage, uint64_t need, struct dp_error *err)
{
    while (stage->unused_count < need) {
        uint8_t *data = aligned_alloc(DP_JOURNAL_PAGE, DP_JOURNAL_CHUNK_BYTES);
        if (!data)
            return dp_fail(err, DP_NOMEM, "journal: no memory for a record of %zu MiB",
                           (size_t)need * DP_JOURNAL_CHUNK_BYTES >> 20);
        stage->unused[stage->unused_count++] = data;
    }
    return DP_OK;
}

enum dp_status dp_journal_stage_room(struct dp_journal *journal, uint64_t bytes, struct dp_error *err)
{
    struct dp_journal_stage *stage = &journal->stage;
    uint64_t need = (bytes + DP_JOURNAL_PAGE) / DP_JOURNAL_CHUNK_BYTES + 2;
    bool writes = !journal->thread_runs || journal->options.durability == DP_DURABILITY_PROCESS;
    enum dp_status st = DP_OK;
    DP_ASSERT(need <= DP_JOURNAL_RING - DP_JOURNAL_CHUNKS);
    if (!has_room(stage, need))
        dp_journal_stage_close(journal);
    while (st == DP_OK && !has_room(stage, need) && writes && !stage->writing)
        st = dp_journal_stage_write(journal);
    if (st != DP_OK)
        return st; /* the journal is poisoned */
    if (has_room(stage, need))
        return take_more(stage, need, err);
    /* The stage holds complete records: when they are written, durable advances and wakes the shard. */
    journal->want_round = true;
    (void)pthread_cond_signal(&journal->wanted);
    return dp_fail(err, DP_BEHIND, "journal: %zu MiB of appended records wait for the disk",
                   (size_t)DP_JOURNAL_CHUNKS * DP_JOURNAL_CHUNK_BYTES >> 20);
}

static void next_chunk(struct dp_journal *journal)
{
    struct dp_journal_stage *stage = &journal->stage;
    stage->closed += stage->filling;
    DP_ASSERT(stage->unused_count > 0 && stage->count < DP_JOURNAL_RING); /* dp_journal_stage_room */
    const struct dp_journal_segment *segment = &journal->segments[journal->count - 1];
    stage->last = &stage->chunk[(stage->first + stage->count++) % DP_JOURNAL_RING];
    *stage->last = (struct dp_journal_chunk){
        .data = stage->unused[--stage->unused_count],
        .file = segment->file,
        .number = segment->number,
        .at = stage->end,
        .first_lsn = journal->last + 1,
    };
    stage->filling = true;
}

/* data NULL: zeros. `locked`: the lock is held, else it is taken for each new chunk. */
static void put(struct dp_journal *journal, const void *data, size_t bytes, bool locked)
{
    struct dp_journal_stage *stage = &journal->stage;
    const uint8_t *from = data;
    while (bytes > 0) {
        if (!stage->filling || stage->last->bytes == DP_JOURNAL_CHUNK_BYTES) {
            if (!locked)
                (void)pthread_mutex_lock(&journal->lock);
            next_chunk(journal);
            if (!locked)
                (void)pthread_mutex_unlock(&journal->lock);
        }
        struct dp_journal_chunk *chunk = stage->last;
        size_t step = DP_JOURNAL_CHUNK_BYTES - chunk->bytes;
        if (step > bytes)
            step = bytes;
        if (from) {
            memcpy(chunk->data + chunk->bytes, from, step);
            from += step;
        } else {
            memset(chunk->data + chunk->bytes, 0, step);
        }
        chunk->bytes += step;
        stage->end += step;
        bytes -= step;
    }
}

void dp_journal_stage_put(struct dp_journal *journal, const uint8_t *header, size_t header_bytes,
                          const struct dp_journal_piece *pieces, uint32_t count, uint64_t whole)
{
    uint64_t left = whole - header_bytes;
    bool locked = whole <= DP_JOURNAL_LOCKED_MAX;
    journal->stage.putting = true;
    if (!locked)
        (void)pthread_mutex_unlock(&journal->lock);
    put(journal, header, header_bytes, locked);
    for (uint32_t i = 0; i < count; i++) {
        put(journal, pieces[i].data, pieces[i].bytes, locked);
        left -= pieces[i].bytes;
    }
    put(journal, NULL, (size_t)left, locked);
    if (!locked)
        (void)pthread_mutex_lock(&journal->lock);
    journal->stage.putting = false;
}
