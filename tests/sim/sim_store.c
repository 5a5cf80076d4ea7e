#include "tests/sim/sim_store_inner.h"

#include "common/model/row.h"

#include <stdlib.h>

/* ---- rows and marks */

static uint32_t place_of(const struct sim_store *store, struct dp_store_key key)
{
    uint32_t low = 0, high = store->rows;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct dp_store_key *at = &store->row[middle].key;
        if (at->table < key.table || (at->table == key.table && at->mixed < key.mixed))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sim_row *find_row(const struct sim_store *store, struct dp_store_key key)
{
    uint32_t at = place_of(store, key);
    if (at == store->rows || store->row[at].key.table != key.table || store->row[at].key.mixed != key.mixed)
        return NULL;
    return &store->row[at];
}

static void put_row(struct sim_store *store, uint64_t job, struct dp_store_key key, const void *data,
                    size_t bytes)
{
    struct sim_row *row = find_row(store, key);
    SIM_GROW(store->undo, store->undos, store->undos_room);
    struct sim_undo *undo = &store->undo[store->undos++];
    *undo = (struct sim_undo){.job = job, .old = {.key = key}};
    if (row) {
        undo->old = *row;
    } else {
        SIM_GROW(store->row, store->rows, store->rows_room);
        uint32_t at = place_of(store, key);
        row = &store->row[at];
        memmove(row + 1, row, (store->rows++ - at) * sizeof *row);
    }
    *row = (struct sim_row){.key = key, .bytes = bytes, .data = sim_store_copied(data, bytes)};
}

static void forget_undo(struct sim_store *store)
{
    while (store->undos > 0)
        free(store->undo[--store->undos].old.data);
}

/* Takes back the writes of the last jobs, those above `upto`. */
static void take_back(struct sim_store *store, uint64_t upto)
{
    while (store->undos > 0 && store->undo[store->undos - 1].job > upto) {
        struct sim_undo *undo = &store->undo[--store->undos];
        struct sim_row *row = find_row(store, undo->old.key);
        free(row->data);
        if (undo->old.data)
            *row = undo->old;
        else
            memmove(row, row + 1, (size_t)(&store->row[store->rows--] - (row + 1)) * sizeof *row);
    }
}

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

void sim_store_put_mark(struct sim_store *store, const struct dp_store_mark *put)
{
    uint32_t at = 0;
    int order = 1;
    while (at < store->marks &&
           (order = compare(store->mark[at].data, store->mark[at].key_bytes, put->key, put->key_bytes)) < 0)
        at++;
    if (at == store->marks || order != 0) {
        SIM_GROW(store->mark, store->marks, store->marks_room);
        memmove(&store->mark[at + 1], &store->mark[at], (store->marks++ - at) * sizeof store->mark[0]);
        store->mark[at].data = NULL;
    }
    struct sim_mark *mark = &store->mark[at];
    if (!put->value) {
        free(mark->data);
        memmove(mark, mark + 1, (--store->marks - at) * sizeof *mark);
        return;
    }
    mark->data = sim_store_resized(mark->data, put->key_bytes + put->value_bytes);
    memcpy(mark->data, put->key, put->key_bytes);
    memcpy(mark->data + put->key_bytes, put->value, put->value_bytes);
    mark->key_bytes = put->key_bytes;
    mark->value_bytes = put->value_bytes;
}

/* ---- jobs */

static bool changes(const struct dp_store_job *job)
{
    return dp_store_kind_is_ordered(job->kind);
}

/* Row i of a read, as it is now. */
static void read_row(struct sim_store *store, struct dp_store_job *job, uint32_t i)
{
    const struct sim_row *row = find_row(store, job->keys[i]);
    job->found[i] = row != NULL;
    if (row && row->bytes != job->row_bytes[i])
        job->status = dp_fail(&job->error, DP_CORRUPT, "simulated store: a row of another length");
    else if (row)
        memcpy(job->rows[i], row->data, row->bytes);
}

static void count_rows(const struct sim_store *store, struct dp_store_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        job->counts[i] = 0;
        for (uint32_t r = 0; r < store->rows; r++)
            job->counts[i] += store->row[r].key.table == job->keys[i].table;
    }
}

static void change(struct sim_store *store, struct dp_store_job *job, uint64_t number)
{
    uint64_t lsn = 0;
    for (uint32_t i = 0; job->kind == DP_STORE_WRITE && i < job->count; i++)
        lsn = dp_row_lsn(job->rows[i]) > lsn ? dp_row_lsn(job->rows[i]) : lsn;
    store->wrote(store->context, lsn);
    for (uint32_t i = 0; i < job->count; i++) {
        if (job->kind == DP_STORE_WRITE)
            put_row(store, number, job->keys[i], job->rows[i], job->row_bytes[i]);
        else
            sim_store_put_mark(store, &job->marks[i]);
    }
    if (job->kind == DP_STORE_MARKS)
        forget_undo(store);
}

static void execute(struct sim_store *store, struct dp_store_job *job, uint64_t number)
{
    if (changes(job) && store->poisoned != DP_OK) {
        job->status = dp_fail(&job->error, store->poisoned, "simulated store: an earlier write failed");
    } else if (store->fails[job->kind]) {
        store->fails[job->kind] = false;
        job->status = dp_fail(&job->error, store->why[job->kind], "simulated store: failure asked for");
        if (dp_store_kind_poisons(job->kind) && job->status != DP_FULL)
            store->poisoned = job->status;
    } else if (job->kind == DP_STORE_COUNT) {
        if (atomic_load(&job->cancelled))
            job->status = dp_fail(&job->error, DP_STOPPING, "simulated store: the count was cancelled");
    } else if (job->kind == DP_STORE_LINK) {
        sim_store_link(store, job->link_name);
    } else if (job->kind == DP_STORE_UNLINK) {
        sim_store_unlink(store, job->link_name);
    } else if (changes(job)) {
        change(store, job, number);
    } else {
        for (uint32_t i = 0; i < job->count; i++)
            if (sim_draw(store->world, 2)) /* else what was read when it was submitted */
                read_row(store, job, i);
    }
}

static void complete(struct sim_store *store, uint32_t at)
{
    struct dp_store_job *job = store->pending[at].job;
    memmove(&store->pending[at], &store->pending[at + 1], (--store->count - at) * sizeof store->pending[0]);
    job->next = NULL;
    *store->completed_end = job;
    store->completed_end = &job->next;
}

static void is_due(void *context, uint64_t number)
{
    struct sim_store *store = context;
    for (uint32_t i = 0; i < store->count; i++) {
        if (store->pending[i].number != number)
            continue;
        enum dp_store_job_kind kind = store->pending[i].job->kind;
        execute(store, store->pending[i].job, number);
        complete(store, i);
        void (*died)(void *died_context) = store->died[kind];
        store->died[kind] = NULL;
        (died ? died : store->wake)(store->context);
        return;
    }
}

/* At opening: what is under way comes to its end without the world's time. */
static void wait_for_job(void *self)
{
    struct sim_store *store = self;
    if ((store->completed && !store->at_once) || store->count == 0)
        return;
    execute(store, store->pending[0].job, store->pending[0].number);
    complete(store, 0);
}

static enum dp_status submit(void *self, struct dp_store_job *job)
{
    struct sim_store *store = self;
    struct sim_world *world = store->world;
    DP_ASSERT(store->open);
    if (store->under_way >= world->plan.jobs_max)
        return DP_AGAIN;
    store->under_way++;
    job->error = (struct dp_error){0};
    job->status = DP_OK;
    for (uint32_t i = 0; job->kind == DP_STORE_READ && i < job->count; i++)
        read_row(store, job, i);
    if (job->kind == DP_STORE_COUNT)
        count_rows(store, job); /* of this moment */
    SIM_GROW(store->pending, store->count, store->room);
    store->pending[store->count++] = (struct sim_pending){job, ++store->number};
    if (store->at_once) {
        wait_for_job(store);
        return DP_OK;
    }
    uint64_t delay_ns = 1000 * (1 + sim_draw(world, 1000 * (uint64_t)world->plan.job_ms + 1));
    if (changes(job)) { /* in order */
        uint64_t due_ns = world->now_ns + delay_ns;
        store->change_due_ns = due_ns > store->change_due_ns ? due_ns : store->change_due_ns + 1;
        delay_ns = store->change_due_ns - world->now_ns;
    }
    sim_at(world, delay_ns, is_due, store, store->number);
    return DP_OK;
}

static struct dp_store_job *completed(void *self)
{
    struct sim_store *store = self;
    struct dp_store_job *job = store->completed;
    if (!job)
        return NULL;
    store->completed = job->next;
    if (!store->completed)
        store->completed_end = &store->completed;
    store->under_way--;
    return job;
}

static void tell_stats(void *self, struct dp_store_stats *out)
{
    struct sim_store *store = self;
    *out = (struct dp_store_stats){.rows_about = sim_draw(store->world, 2) ? store->rows : 0};
}

static enum dp_status visit_marks(void *self, const void *prefix, size_t prefix_bytes,
                                  dp_store_visit_mark *visit, void *context, struct dp_error *err)
{
    struct sim_store *store = self;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < store->marks && st == DP_OK; i++) {
        const struct sim_mark *mark = &store->mark[i];
        struct dp_store_mark lent = {mark->data, mark->data + mark->key_bytes, mark->key_bytes,
                                     mark->value_bytes};
        if (mark->key_bytes >= prefix_bytes && memcmp(mark->data, prefix, prefix_bytes) == 0)
            st = visit(context, &lent, err);
    }
    return st;
}

static enum dp_status visit_rows(void *self, dp_store_visit_row *visit, void *context, struct dp_error *err)
{
    struct sim_store *store = self;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < store->rows && st == DP_OK; i++)
        st = visit(context, store->row[i].key, store->row[i].data, store->row[i].bytes, err);
    return st;
}

static void close_store(void *self)
{
    struct sim_store *store = self;
    DP_ASSERT(store->open && store->under_way == 0);
    store->open = false;
}

/* ---- the hand of the test */

struct sim_store *sim_store_new(struct sim_world *world, void (*wake)(void *context),
                                void (*wrote)(void *context, uint64_t lsn), void *context)
{
    struct sim_store *store = sim_store_resized(NULL, sizeof *store);
    *store = (struct sim_store){.world = world, .wake = wake, .wrote = wrote, .context = context};
    store->completed_end = &store->completed;
    return store;
}

void sim_store_free(struct sim_store **out)
{
    struct sim_store *store = *out;
    for (uint32_t i = 0; i < store->rows; i++)
        free(store->row[i].data);
    for (uint32_t i = 0; i < store->marks; i++)
        free(store->mark[i].data);
    while (store->links > 0)
        sim_store_unlink(store, store->link[0].name);
    forget_undo(store);
    free(store->row);
    free(store->mark);
    free(store->undo);
    free(store->pending);
    free(store);
    *out = NULL;
}

struct dp_store sim_store_open(struct sim_store *store)
{
    DP_ASSERT(!store->open);
    store->open = true;
    store->poisoned = DP_OK;
    memset(store->fails, 0, sizeof store->fails);
    while (store->links > 0)
        sim_store_unlink(store, store->link[0].name);
    return (struct dp_store){.submit = submit,
                             .completed = completed,
                             .wait = wait_for_job,
                             .stats = tell_stats,
                             .visit_marks = visit_marks,
                             .visit_rows = visit_rows,
                             .close = close_store,
                             .self = store};
}

void sim_store_crash(struct sim_store *store, bool power)
{
    uint64_t did = sim_draw(store->world, 3) ? 0 : sim_draw(store->world, store->count + 1);
    for (uint32_t i = 0; i < store->count && did > 0; i++)
        if (changes(store->pending[i].job)) {
            execute(store, store->pending[i].job, store->pending[i].number);
            did--;
        }
    while (store->count > 0) {
        struct dp_store_job *job = store->pending[0].job;
        job->status = dp_fail(&job->error, DP_IO, "simulated store: it is gone");
        complete(store, 0);
    }
    if (power && sim_draw(store->world, 2))
        take_back(store, store->number - sim_draw(store->world, store->number + 1));
    store->change_due_ns = 0;
}

void sim_store_fail(struct sim_store *store, enum dp_store_job_kind kind, enum dp_status why)
{
    store->fails[kind] = true;
    store->why[kind] = why;
}

void sim_store_heal(struct sim_store *store)
{
    memset(store->fails, 0, sizeof store->fails);
    memset(store->died, 0, sizeof store->died);
}

void sim_store_die(struct sim_store *store, enum dp_store_job_kind kind, void (*died)(void *context))
{
    store->died[kind] = died;
}

bool sim_store_is_poisoned(const struct sim_store *store)
{
    return store->poisoned != DP_OK;
}

uint32_t sim_store_rows(const struct sim_store *store)
{
    return store->rows;
}

const void *sim_store_row(const struct sim_store *store, struct dp_store_key key, size_t *bytes)
{
    const struct sim_row *row = find_row(store, key);
    *bytes = row ? row->bytes : 0;
    return row ? row->data : NULL;
}
