#include "tests/lib/fake_store.h"

#include "common/base/bytes.h"

#include <stdlib.h>

#define KINDS     (DP_STORE_UNLINK + 1)
#define KEY_BYTES 12u

/* A sorted array of (key, value), keys in the order of their bytes. */
struct entry {
    size_t key_bytes, value_bytes;
    unsigned char *bytes; /* key, then value */
};
struct map {
    struct entry *entries;
    size_t len, len_max;
};

#define LINKS_MAX 8u

struct link {
    char name[DP_STORE_LINK_BYTES]; /* "": none */
    struct map rows, marks;
};

struct dp_fake_store {
    uint64_t l0_files;
    struct map rows, marks;
    struct link link[LINKS_MAX];
    uint32_t jobs_max, under_way;
    bool open, hold, read_at_submit;
    enum dp_status poisoned; /* what the first failed write or marks job failed with */
    struct dp_store_job *held, **held_end;
    struct dp_store_job *completed, **completed_end;
    uint32_t fail_in[KINDS]; /* 0: none waits */
    enum dp_status fail_why[KINDS];
    uint64_t jobs[KINDS], items[KINDS];
};

static void *take_memory(void *old, size_t bytes)
{
    void *block = realloc(old, bytes ? bytes : 1);
    DP_ASSERT(block != NULL);
    return block;
}

static int compare(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    size_t common = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = common ? memcmp(a, b, common) : 0;
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* The first entry whose key is not below `key`. */
static size_t map_lower_bound(const struct map *map, const void *key, size_t key_bytes)
{
    size_t low = 0, high = map->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct entry *entry = &map->entries[middle];
        if (compare(entry->bytes, entry->key_bytes, key, key_bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct entry *map_find(const struct map *map, const void *key, size_t key_bytes)
{
    size_t at = map_lower_bound(map, key, key_bytes);
    if (at == map->len)
        return NULL;
    const struct entry *entry = &map->entries[at];
    return compare(entry->bytes, entry->key_bytes, key, key_bytes) == 0 ? entry : NULL;
}

static void map_put(struct map *map, const struct dp_store_mark *put)
{
    size_t at = map_lower_bound(map, put->key, put->key_bytes);
    struct entry *entry = at < map->len ? &map->entries[at] : NULL;
    if (!entry || compare(entry->bytes, entry->key_bytes, put->key, put->key_bytes) != 0) {
        if (map->len == map->len_max) {
            map->len_max = map->len_max ? 2 * map->len_max : 64;
            map->entries = take_memory(map->entries, map->len_max * sizeof map->entries[0]);
        }
        entry = &map->entries[at];
        memmove(entry + 1, entry, (map->len - at) * sizeof *entry);
        *entry = (struct entry){0};
        map->len++;
    }
    entry->bytes = take_memory(entry->bytes, put->key_bytes + put->value_bytes);
    if (put->key_bytes)
        memcpy(entry->bytes, put->key, put->key_bytes);
    if (put->value_bytes)
        memcpy(entry->bytes + put->key_bytes, put->value, put->value_bytes);
    entry->key_bytes = put->key_bytes;
    entry->value_bytes = put->value_bytes;
}

static struct map map_copy(const struct map *map)
{
    struct map copy = {0};
    for (size_t i = 0; i < map->len; i++) {
        const struct entry *entry = &map->entries[i];
        const struct dp_store_mark put = {entry->bytes, entry->bytes + entry->key_bytes, entry->key_bytes,
                                          entry->value_bytes};
        map_put(&copy, &put);
    }
    return copy;
}

static void map_clear(struct map *map)
{
    for (size_t i = 0; i < map->len; i++)
        free(map->entries[i].bytes);
    free(map->entries);
    *map = (struct map){0};
}

static void put_key(unsigned char bytes[KEY_BYTES], struct dp_store_key key)
{
    dp_store_u32be(bytes, key.table);
    dp_store_u64be(bytes + 4, key.mixed);
}

static bool changes(const struct dp_store_job *job)
{
    return dp_store_kind_is_ordered(job->kind);
}

/* ---- links */

static struct link *find_link(const struct dp_fake_store *fake, const char *name)
{
    for (uint32_t i = 0; i < LINKS_MAX; i++)
        if (strcmp(fake->link[i].name, name) == 0)
            return (struct link *)&fake->link[i];
    return NULL;
}

static void remove_link(struct link *link)
{
    map_clear(&link->rows);
    map_clear(&link->marks);
    link->name[0] = '\0';
}

static enum dp_status make_link(struct dp_fake_store *fake, struct dp_store_job *job)
{
    if (find_link(fake, job->link_name))
        return dp_fail(&job->error, DP_EXISTS, "fake store: it has a link %s", job->link_name);
    struct link *link = find_link(fake, "");
    DP_ASSERT(link && strncmp(job->link_name, DP_STORE_LINK_PREFIX, strlen(DP_STORE_LINK_PREFIX)) == 0);
    *link = (struct link){.rows = map_copy(&fake->rows), .marks = map_copy(&fake->marks)};
    memcpy(link->name, job->link_name, sizeof link->name);
    return DP_OK;
}

static void change_links(struct dp_fake_store *fake, struct dp_store_job *job)
{
    if (job->kind == DP_STORE_LINK)
        job->status = make_link(fake, job);
    else if (job->kind == DP_STORE_UNLINK && find_link(fake, job->link_name))
        remove_link(find_link(fake, job->link_name));
}

static void check(const struct dp_store_job *job)
{
    for (uint32_t i = 0; i < job->count && job->kind == DP_STORE_MARKS; i++)
        DP_ASSERT(!dp_store_mark_is_own(&job->marks[i]));
    for (uint32_t i = 1; i < job->count && job->kind != DP_STORE_MARKS; i++) {
        const struct dp_store_key *low = &job->keys[i - 1], *high = &job->keys[i];
        bool equal = low->table == high->table && low->mixed == high->mixed;
        bool above = low->table < high->table || (low->table == high->table && low->mixed < high->mixed);
        DP_ASSERT(above || (equal && job->kind == DP_STORE_READ));
    }
}

static enum dp_status read_rows(struct dp_fake_store *fake, struct dp_store_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        size_t bytes = 0;
        const void *row = dp_fake_store_row(fake, job->keys[i], &bytes);
        job->found[i] = row != NULL;
        if (row && bytes != job->row_bytes[i])
            return dp_fail(&job->error, DP_CORRUPT, "fake store: a row of %zu bytes, expected %u", bytes,
                           (unsigned)job->row_bytes[i]);
        if (row)
            memcpy(job->rows[i], row, bytes);
    }
    return DP_OK;
}

/* At submit, whenever it completes: of that moment. */
static void count_rows(const struct dp_fake_store *fake, struct dp_store_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        job->counts[i] = 0;
        for (size_t at = 0; at < fake->rows.len; at++)
            job->counts[i] += dp_load_u32be(fake->rows.entries[at].bytes) == job->keys[i].table;
    }
}

static void execute(struct dp_fake_store *fake, struct dp_store_job *job)
{
    if (job->kind == DP_STORE_COUNT && atomic_load(&job->cancelled)) {
        job->status = dp_fail(&job->error, DP_STOPPING, "fake store: the count was cancelled");
        return;
    }
    if (changes(job) && job->kind != DP_STORE_UNLINK && fake->poisoned != DP_OK) {
        job->status = dp_fail(&job->error, fake->poisoned, "fake store: an earlier write failed");
        return;
    }
    if (fake->fail_in[job->kind] > 0 && --fake->fail_in[job->kind] == 0) {
        job->status = dp_fail(&job->error, fake->fail_why[job->kind], "fake store: failure asked for");
        if (dp_store_kind_poisons(job->kind) && job->status != DP_FULL)
            fake->poisoned = job->status;
        return;
    }
    job->status = DP_OK;
    if (job->kind == DP_STORE_READ)
        job->status = read_rows(fake, job);
    change_links(fake, job);
    for (uint32_t i = 0; i < job->count && changes(job); i++) {
        if (job->kind == DP_STORE_WRITE)
            dp_fake_store_put_row(fake, job->keys[i], job->rows[i], job->row_bytes[i]);
        else
            dp_fake_store_put_mark(fake, &job->marks[i]);
    }
}

static void append(struct dp_store_job ***end, struct dp_store_job *job)
{
    job->next = NULL;
    **end = job;
    *end = &job->next;
}

static enum dp_status fake_submit(void *self, struct dp_store_job *job)
{
    struct dp_fake_store *fake = self;
    DP_ASSERT(fake->open && job->kind < KINDS);
    check(job);
    if (fake->under_way == fake->jobs_max)
        return DP_AGAIN;
    fake->under_way++;
    fake->jobs[job->kind]++;
    fake->items[job->kind] += job->count;
    job->error = (struct dp_error){0};
    if (job->kind == DP_STORE_COUNT)
        count_rows(fake, job);
    if (!fake->hold || (fake->read_at_submit && !changes(job)))
        execute(fake, job);
    append(fake->hold ? &fake->held_end : &fake->completed_end, job);
    return DP_OK;
}

static struct dp_store_job *fake_completed(void *self)
{
    struct dp_fake_store *fake = self;
    struct dp_store_job *job = fake->completed;
    DP_ASSERT(fake->open);
    if (!job)
        return NULL;
    fake->completed = job->next;
    if (!fake->completed)
        fake->completed_end = &fake->completed;
    job->next = NULL;
    fake->under_way--;
    return job;
}

static void fake_wait(void *self)
{
    struct dp_fake_store *fake = self;
    DP_ASSERT(fake->open);
    if (!fake->completed && fake->held)
        dp_fake_store_release(fake, 0);
}

static enum dp_status fake_visit_marks(void *self, const void *prefix, size_t prefix_bytes,
                                       dp_store_visit_mark *visit, void *context, struct dp_error *err)
{
    struct dp_fake_store *fake = self;
    enum dp_status st = DP_OK;
    DP_ASSERT(fake->open && fake->under_way == 0);
    for (size_t at = map_lower_bound(&fake->marks, prefix, prefix_bytes); at < fake->marks.len; at++) {
        const struct entry *entry = &fake->marks.entries[at];
        if (entry->key_bytes < prefix_bytes ||
            (prefix_bytes && memcmp(entry->bytes, prefix, prefix_bytes) != 0))
            break;
        struct dp_store_mark mark = {entry->bytes, entry->bytes + entry->key_bytes, entry->key_bytes,
                                     entry->value_bytes};
        st = visit(context, &mark, err);
        if (st != DP_OK)
            break;
    }
    return st;
}

static enum dp_status fake_visit_rows(void *self, dp_store_visit_row *visit, void *context,
                                      struct dp_error *err)
{
    struct dp_fake_store *fake = self;
    enum dp_status st = DP_OK;
    DP_ASSERT(fake->open && fake->under_way == 0);
    for (size_t at = 0; st == DP_OK && at < fake->rows.len; at++) {
        const struct entry *entry = &fake->rows.entries[at];
        struct dp_store_key key = {dp_load_u32be(entry->bytes), dp_load_u64be(entry->bytes + 4)};
        st = visit(context, key, entry->bytes + entry->key_bytes, entry->value_bytes, err);
    }
    return st;
}

static void fake_stats(void *self, struct dp_store_stats *out)
{
    struct dp_fake_store *fake = self;
    *out = (struct dp_store_stats){.rows_about = fake->rows.len, .l0_files = fake->l0_files};
}

void dp_fake_store_l0_files(struct dp_fake_store *fake, uint64_t files)
{
    fake->l0_files = files;
}

static void fake_close(void *self)
{
    struct dp_fake_store *fake = self;
    DP_ASSERT(fake->open && fake->under_way == 0);
    fake->open = false;
    fake->poisoned = DP_OK;
}

struct dp_fake_store *dp_fake_store_new(uint32_t jobs_max)
{
    DP_ASSERT(jobs_max > 0);
    struct dp_fake_store *fake = take_memory(NULL, sizeof *fake);
    *fake = (struct dp_fake_store){.jobs_max = jobs_max};
    fake->held_end = &fake->held;
    fake->completed_end = &fake->completed;
    return fake;
}

void dp_fake_store_free(struct dp_fake_store **fake)
{
    if (!*fake)
        return;
    DP_ASSERT(!(*fake)->open);
    map_clear(&(*fake)->rows);
    map_clear(&(*fake)->marks);
    for (uint32_t i = 0; i < LINKS_MAX; i++)
        remove_link(&(*fake)->link[i]);
    free(*fake);
    *fake = NULL;
}

struct dp_store dp_fake_store_open(struct dp_fake_store *fake)
{
    DP_ASSERT(!fake->open);
    fake->open = true;
    for (uint32_t i = 0; i < LINKS_MAX; i++)
        remove_link(&fake->link[i]);
    return (struct dp_store){.submit = fake_submit,
                             .completed = fake_completed,
                             .wait = fake_wait,
                             .visit_marks = fake_visit_marks,
                             .visit_rows = fake_visit_rows,
                             .stats = fake_stats,
                             .close = fake_close,
                             .self = fake};
}

void dp_fake_store_hold(struct dp_fake_store *fake, bool hold)
{
    fake->hold = hold;
    if (!hold)
        dp_fake_store_release_all(fake);
}

void dp_fake_store_read_at_submit(struct dp_fake_store *fake, bool at_submit)
{
    DP_ASSERT(!fake->held); /* a held job would not know whether it was read */
    fake->read_at_submit = at_submit;
}

uint32_t dp_fake_store_held(const struct dp_fake_store *fake)
{
    uint32_t len = 0;
    for (const struct dp_store_job *job = fake->held; job; job = job->next)
        len++;
    return len;
}

const struct dp_store_job *dp_fake_store_held_job(const struct dp_fake_store *fake, uint32_t at)
{
    const struct dp_store_job *job = fake->held;
    for (; job && at > 0; at--)
        job = job->next;
    DP_ASSERT(job != NULL);
    return job;
}

void dp_fake_store_release(struct dp_fake_store *fake, uint32_t at)
{
    struct dp_store_job **link = &fake->held;
    bool passes_change = false;
    for (; *link && at > 0; at--) {
        passes_change = passes_change || changes(*link);
        link = &(*link)->next;
    }
    struct dp_store_job *job = *link;
    DP_ASSERT(job != NULL && !(passes_change && changes(job)));
    *link = job->next;
    if (!*link)
        fake->held_end = link;
    if (!fake->read_at_submit || changes(job))
        execute(fake, job);
    append(&fake->completed_end, job);
}

void dp_fake_store_release_all(struct dp_fake_store *fake)
{
    while (fake->held)
        dp_fake_store_release(fake, 0);
}

void dp_fake_store_fail(struct dp_fake_store *fake, enum dp_store_job_kind kind, uint32_t nth,
                        enum dp_status why)
{
    DP_ASSERT(nth > 0 && why != DP_OK && fake->fail_in[kind] == 0);
    fake->fail_in[kind] = nth;
    fake->fail_why[kind] = why;
}

uint64_t dp_fake_store_jobs(const struct dp_fake_store *fake, enum dp_store_job_kind kind)
{
    return fake->jobs[kind];
}

uint64_t dp_fake_store_items(const struct dp_fake_store *fake, enum dp_store_job_kind kind)
{
    return fake->items[kind];
}

size_t dp_fake_store_rows(const struct dp_fake_store *fake)
{
    return fake->rows.len;
}

static const void *value_of(const struct entry *entry, size_t *bytes)
{
    if (!entry)
        return NULL;
    *bytes = entry->value_bytes;
    return entry->bytes + entry->key_bytes;
}

const void *dp_fake_store_row(const struct dp_fake_store *fake, struct dp_store_key key, size_t *bytes)
{
    unsigned char key_bytes[KEY_BYTES];
    put_key(key_bytes, key);
    return value_of(map_find(&fake->rows, key_bytes, sizeof key_bytes), bytes);
}

const void *dp_fake_store_mark(const struct dp_fake_store *fake, const void *key, size_t key_bytes,
                               size_t *bytes)
{
    return value_of(map_find(&fake->marks, key, key_bytes), bytes);
}

void dp_fake_store_put_row(struct dp_fake_store *fake, struct dp_store_key key, const void *row, size_t bytes)
{
    unsigned char key_bytes[KEY_BYTES];
    put_key(key_bytes, key);
    struct dp_store_mark put = {key_bytes, row, sizeof key_bytes, bytes};
    map_put(&fake->rows, &put);
}

void dp_fake_store_put_mark(struct dp_fake_store *fake, const struct dp_store_mark *mark)
{
    map_put(&fake->marks, mark);
}

uint32_t dp_fake_store_links(const struct dp_fake_store *fake)
{
    uint32_t links = 0;
    for (uint32_t i = 0; i < LINKS_MAX; i++)
        links += fake->link[i].name[0] != '\0';
    return links;
}

bool dp_fake_store_has_link(const struct dp_fake_store *fake, const char *name)
{
    return name[0] && find_link(fake, name);
}
