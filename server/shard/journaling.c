/* The shard and its journal: what is pushed is appended, what is appended becomes durable, what is durable is
 * answered.
 *     append -> apply -> (end of the turn) commit -> ... -> (start of a turn) durable -> answer (this order, always)
 * Why       An answer is held until the journal is durable past its push; a repeated push's, until past the last one
 *           appended, so that the first copy is durable too. Replay reads no configuration and no clock: the record
 *           and the table's mark have all that applying needs.
 * Holds     durable <= lsn; rows == replay(store, journal up to lsn), bit for bit. */
#include "server/shard/shard_inner.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "server/shard/record.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- replay */

static enum dp_status load_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct dp_shard *shard = context;
    struct dp_shard_table *table = dp_shard_find_table(shard, key.table);
    uint32_t number;
    if (!table || row_bytes != table->cache->row_bytes)
        return dp_fail(err, DP_CORRUPT, "the store has a row of %zu bytes for table %08" PRIx32 ", which %s",
                       row_bytes, key.table, table ? "has rows of another length" : "has no mark");
    if (!dp_range_has(shard->range, key.mixed))
        return dp_fail(err, DP_CORRUPT, "the store has a row of another shard, mixed key %016" PRIx64,
                       key.mixed);
    if (dp_row_is_number(dp_row_cache_find(table->cache, key.mixed)))
        return DP_OK;
    if (dp_row_cache_insert(table->cache, key.mixed, &number) != DP_OK)
        return dp_fail(err, DP_NOMEM, "rows of table '%s'", table->spec.name);
    memcpy(dp_row_cache_row(table->cache, number), row, row_bytes);
    table->stored++;
    DP_COUNT(&shard->counters, rows_read, 1);
    DP_COUNT(&shard->counters, cache_rows, 1);
    return DP_OK;
}

/* All rows of the store into the cache: replay needs those it touches, and after a crash nobody has counted them. */
static enum dp_status load_rows(struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_store *store = shard->options.store;
    shard->rows_loaded = true;
    for (uint32_t i = 0; i < shard->tables; i++)
        shard->table[i]->stored = shard->table[i]->away = 0;
    return store->visit_rows(store->self, load_row, shard, err);
}

static enum dp_status replay_section(struct dp_shard *shard, const struct dp_section *section, uint32_t dim,
                                     float rate, uint64_t lsn, struct dp_error *err)
{
    struct dp_shard_table *table = dp_shard_find_table(shard, section->table);
    if (!table || table->spec.dim != dim)
        return dp_fail(err, DP_CORRUPT,
                       "a push to table %08" PRIx32 " of width %" PRIu32 ", which the store %s",
                       section->table, dim, table ? "has with another width" : "does not know");
    for (uint32_t i = 0; i < section->rows; i++) {
        const char *key = (const char *)section->keys + (size_t)i * 8;
        if (!dp_range_has(shard->range, dp_load_u64le(key)) ||
            (i > 0 && dp_load_u64le(key - 8) >= dp_load_u64le(key)))
            return dp_fail(
                err, DP_CORRUPT,
                "a push to table '%s' whose keys are not of this shard, or not in order: is it another "
                "shard's journal?",
                table->spec.name);
    }
    if (section->rows > shard->rows_room) {
        uint32_t *more = realloc(shard->rows, section->rows * sizeof more[0]);
        if (!more)
            return dp_fail(err, DP_NOMEM, "%" PRIu32 " rows", section->rows);
        shard->rows = more;
        shard->rows_room = section->rows;
    }
    dp_row_cache_find_many(table->cache, section->keys, section->rows, shard->rows);
    enum dp_status st = dp_shard_make_rows(shard, section, table, shard->rows, err);
    if (st == DP_OK)
        dp_shard_apply(shard, section, table, shard->rows, rate, lsn);
    return st;
}

static enum dp_status replay(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err)
{
    struct dp_shard *shard = context;
    uint32_t dims[DP_SECTIONS_MAX];
    enum dp_status refused = DP_OK;
    struct dp_request *push = calloc(1, sizeof *push);
    enum dp_status st = push ? DP_OK : dp_fail(err, DP_NOMEM, "a record");
    if (st == DP_OK && !shard->rows_loaded)
        st = load_rows(shard, err);
    if (st == DP_OK)
        st = dp_record_decode(record, bytes, push, &refused, dims, err);
    for (uint32_t s = 0; st == DP_OK && s < push->sections; s++)
        st = replay_section(shard, &push->section[s], dims[s], push->rate, lsn, err);
    if (st == DP_OK && dp_push_ids_restore(shard->ids, push->stream, push->number, refused) != DP_OK)
        st = dp_fail(err, DP_NOMEM, "push ids");
    free(push);
    DP_COUNT(&shard->counters, pushes_replayed, 1);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "replaying record %" PRIu64, lsn);
}

/* The store learns which opening of the journal is to be there next time, before anything is answered: a journal that is
 * gone, or an older copy, is then refused, not taken for an empty one. */
static enum dp_status put_incarnation(struct dp_shard *shard, struct dp_error *err)
{
    struct dp_journal_figures figures;
    dp_journal_figures(shard->journal, &figures);
    struct dp_store_mark *mark = calloc(1, sizeof *mark + 8);
    struct dp_shard_job *job = mark ? dp_shard_job_new(DP_JOB_JOURNAL, mark) : NULL;
    if (!job)
        return dp_fail(err, DP_NOMEM, "the journal's mark");
    char *value = (char *)(mark + 1);
    dp_store_u64le(value, figures.incarnation);
    *mark = (struct dp_store_mark){.key = "journal", .key_bytes = 7, .value = value, .value_bytes = 8};
    job->store.kind = DP_STORE_MARKS;
    job->store.count = 1;
    job->store.marks = mark;
    enum dp_status st = dp_shard_submit(shard, job);
    return st == DP_OK ? st : dp_fail(err, st, "the journal's mark");
}

enum dp_status dp_shard_open_journal(struct dp_shard *shard, struct dp_error *err)
{
    shard->write_back.rows_lsn = shard->write_back.marked_lsn = shard->lsn;
    enum dp_status st = DP_OK;
    if (shard->options.journaled) {
        struct dp_journal_options options = shard->options.journal;
        options.replay_after = shard->lsn;
        options.replay = replay;
        options.replay_context = shard;
        options.incarnation = shard->incarnation;
        options.must_be_there = shard->options.recovers;
        if (shard->options.recovers)
            st = load_rows(shard, err);
        if (st == DP_OK)
            st = dp_journal_open(&options, &shard->journal, err);
        if (st == DP_OK) {
            shard->lsn = dp_journal_last(shard->journal);
            /* A crash between the marks of a cycle and this is made up for: else a full journal would stay so. */
            dp_journal_release(shard->journal, shard->write_back.marked_lsn + 1);
            dp_journal_commit(shard->journal);
            st = put_incarnation(shard, err);
        }
    }
    shard->applied = shard->durable = shard->synced = shard->lsn;
    shard->write_back.began_ns = dp_clock_ns(&shard->options.clock);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "shard %" PRIu32, shard->options.index);
}

/* ---- pushes */

static enum dp_status append(struct dp_shard *shard, const struct dp_request *push,
                             struct dp_shard_table **tables, enum dp_status refused, struct dp_error *err)
{
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    char head[DP_RECORD_HEAD_MAX];
    uint32_t dims[DP_SECTIONS_MAX];
    size_t bytes = 0;
    for (uint32_t s = 0; refused == DP_OK && s < push->sections; s++)
        dims[s] = tables[s]->spec.dim;
    uint32_t n = dp_record_encode(push, dims, refused, head, pieces);
    for (uint32_t i = 0; i < n; i++)
        bytes += pieces[i].bytes;
    enum dp_status st = dp_journal_append(shard->journal, pieces, n, &shard->lsn, err);
    if (st == DP_OK) {
        shard->write_back.bytes += bytes;
        DP_COUNT(&shard->counters, journal_bytes, bytes);
    }
    return st;
}

enum dp_status dp_shard_journal_push(struct dp_shard *shard, const struct dp_request *push,
                                     struct dp_shard_table **tables, enum dp_status refused,
                                     struct dp_error *err)
{
    if (!shard->journal) {
        shard->durable = shard->synced = ++shard->lsn;
        return DP_OK;
    }
    if (shard->journal_failed.status != DP_OK) {
        *err = shard->journal_failed;
        return dp_wrap(err, err->status, "shard %" PRIu32 " takes no pushes, restart its server",
                       shard->options.index);
    }
    enum dp_status st = append(shard, push, tables, refused, err);
    if (st != DP_AGAIN)
        return st;
    if (shard->write_back.failed.status != DP_OK) { /* nobody will make room */
        *err = shard->write_back.failed;
        return dp_wrap(err, err->status,
                       "shard %" PRIu32 ": its journal is full and rows cannot be written back",
                       shard->options.index);
    }
    shard->write_back.wanted = true;
    return st;
}

static void refuse(struct dp_shard *shard, const struct dp_held_answer *answer, const struct dp_error *err)
{
    struct dp_request request = {0};
    request.id = answer->id;
    request.session = answer->session;
    dp_shard_refuse(shard, &answer->peer, &request, answer->sequence, err);
}

static void answer_held(struct dp_shard *shard, struct dp_held_answer *answer)
{
    if (answer->refused) {
        refuse(shard, answer, answer->refused);
        free(answer->refused);
        return;
    }
    struct dp_waiting to = {.peer = answer->peer};
    to.request.id = answer->id;
    to.request.session = answer->session;
    struct dp_reply reply = {
        .kind = DP_REPLY_PUSHED, .staleness = answer->staleness, .repeated = answer->repeated};
    dp_shard_answer(shard, &to, &reply, NULL, 0);
}

static void hold(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_held_answer *answer)
{
    answer->lsn = shard->lsn;
    answer->peer = waiting->peer;
    answer->id = waiting->request.id;
    answer->session = waiting->request.session;
    answer->sequence = waiting->request.sequence;
    if (shard->durable >= answer->lsn) {
        answer_held(shard, answer);
    } else if (dp_held_add(&shard->held, answer) != DP_OK) {
        free(answer->refused);
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": no memory to hold an answer: the client will ask again",
               shard->options.index);
    }
}

void dp_shard_hold_answer(struct dp_shard *shard, const struct dp_waiting *waiting, uint64_t staleness,
                          bool repeated)
{
    struct dp_held_answer answer = {.staleness = staleness, .repeated = repeated};
    hold(shard, waiting, &answer);
}

void dp_shard_hold_refusal(struct dp_shard *shard, const struct dp_waiting *waiting,
                           const struct dp_error *err)
{
    struct dp_held_answer answer = {.refused = malloc(sizeof *err)};
    if (!answer.refused)
        return; /* the client will ask again */
    *answer.refused = *err;
    hold(shard, waiting, &answer);
}

bool dp_shard_journal_lost(const struct dp_shard *shard, struct dp_error *err)
{
    if (shard->journal_failed.status == DP_OK || shard->durable >= shard->lsn)
        return false;
    *err = shard->journal_failed;
    (void)dp_wrap(err, DP_AGAIN, "shard %" PRIu32 " takes no pushes, restart its server",
                  shard->options.index);
    err->status = DP_AGAIN;
    return true;
}

/* ---- turns */

/* What will never be durable here: whether it is in the journal, the next opening sees. It is to be asked again. */
static void refuse_held(struct dp_shard *shard)
{
    struct dp_held_answer answer;
    struct dp_error err = {0};
    while (dp_held_take(&shard->held, UINT64_MAX, &answer)) {
        (void)dp_shard_journal_lost(shard, &err);
        refuse(shard, &answer, &err);
        free(answer.refused);
    }
}

static void fail_journal(struct dp_shard *shard, const struct dp_error *err)
{
    shard->journal_failed = *err;
    dp_log(DP_LOG_ERROR, "shard %" PRIu32 ": %s; no push is taken any more, restart the server",
           shard->options.index, err->text);
    refuse_held(shard);
}

void dp_shard_journal_put(struct dp_shard *shard, const struct dp_shard_job *job)
{
    shard->incarnation_put = job->store.status == DP_OK;
    if (!shard->incarnation_put && shard->journal_failed.status == DP_OK)
        fail_journal(shard, &job->store.error);
}

void dp_shard_journal_turn(struct dp_shard *shard)
{
    if (!shard->journal || shard->journal_failed.status != DP_OK)
        return;
    enum dp_status st = DP_OK;
    struct dp_error err = {0};
    struct dp_held_answer answer;
    uint64_t durable = dp_journal_durable(shard->journal, &st, &err);
    shard->durable = shard->incarnation_put ? durable : shard->durable;
    shard->synced = dp_journal_synced(shard->journal);
    while (dp_held_take(&shard->held, shard->durable, &answer))
        answer_held(shard, &answer);
    if (st != DP_OK) {
        fail_journal(shard, &err);
    }
    DP_COUNT_SET(&shard->counters, answers_held, shard->held.count);
}

void dp_shard_journal_commit(struct dp_shard *shard)
{
    if (!shard->journal || shard->journal_failed.status != DP_OK)
        return;
    if (shard->durable < shard->lsn) {
        dp_journal_commit(shard->journal);
        dp_shard_journal_turn(shard); /* mode process: it is durable already, and nobody will wake us */
    }
    /* In mode process nobody else asks for a sync. */
    if (shard->write_back.ready && shard->synced < shard->write_back.ready_lsn)
        dp_journal_sync(shard->journal);
}
