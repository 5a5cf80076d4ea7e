#include "tests/lib/sim_disk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR    512u
#define NAME_MAX_ 48
#define NAMES     128u
#define CHANGES   64u

/* A file's bytes as a reader sees them, and as they are on the platter. */
struct inode {
    uint8_t *seen, *durable, *dirty; /* dirty: one byte a sector */
    uint64_t bytes, durable_bytes, room;
    bool size_dirty;
    uint32_t opens;
};

struct name {
    char text[NAME_MAX_]; /* empty: free */
    struct inode *inode;
};

/* A change of the directory that was not synced: `from` empty: made; `to` empty: removed. */
struct change {
    char from[NAME_MAX_], to[NAME_MAX_];
    struct inode *inode;
};

struct dp_file {
    struct inode *inode;
    uint64_t life;
};

struct dp_sim_disk {
    pthread_mutex_t lock;
    uint64_t random, operations, cut_at, life, capacity;
    bool off;
    struct inode **inodes;
    size_t inode_count, inode_room;
    struct name seen[NAMES], durable[NAMES];
    struct change changes[CHANGES];
    size_t change_count;
    struct {
        uint64_t nth, times;
        enum dp_status status;
    } fail[DP_SIM_OPERATIONS];
};

static uint64_t draw(struct dp_sim_disk *sim)
{
    uint64_t z = sim->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void *grown(void *block, size_t bytes)
{
    void *more = realloc(block, bytes ? bytes : 1);
    if (!more)
        abort();
    return more;
}

struct dp_sim_disk *dp_sim_disk_new(uint64_t seed)
{
    struct dp_sim_disk *sim = calloc(1, sizeof *sim);
    if (!sim)
        abort();
    sim->random = seed;
    sim->capacity = UINT64_MAX;
    (void)pthread_mutex_init(&sim->lock, NULL);
    return sim;
}

static void free_inode(struct inode *inode)
{
    free(inode->seen);
    free(inode->durable);
    free(inode->dirty);
    free(inode);
}

void dp_sim_disk_free(struct dp_sim_disk **out)
{
    struct dp_sim_disk *sim = *out;
    if (!sim)
        return;
    for (size_t i = 0; i < sim->inode_count; i++)
        free_inode(sim->inodes[i]);
    free(sim->inodes);
    (void)pthread_mutex_destroy(&sim->lock);
    free(sim);
    *out = NULL;
}

/* ---- names ---- */

static struct name *find(struct name *names, const char *text)
{
    for (size_t i = 0; i < NAMES; i++)
        if (strcmp(names[i].text, text) == 0)
            return &names[i];
    return NULL;
}

/* `name` stands for the inode from now on; NULL inode: the name is gone. */
static void set_name(struct name *names, const char *text, struct inode *inode)
{
    struct name *name = find(names, text);
    if (!name && inode)
        name = find(names, "");
    if (!name) {
        if (inode)
            abort();
        return;
    }
    name->inode = inode;
    (void)memset(name->text, 0, sizeof name->text);
    if (inode)
        strncpy(name->text, text, sizeof name->text - 1);
}

static void apply(struct name *names, const struct change *change)
{
    if (change->from[0]) {
        struct name *from = find(names, change->from);
        if (!from || from->inode != change->inode)
            return; /* what it stands on did not survive */
        set_name(names, change->from, NULL);
    }
    if (change->to[0])
        set_name(names, change->to, change->inode);
}

static void change_names(struct dp_sim_disk *sim, const char *from, const char *to, struct inode *inode)
{
    struct change change = {.inode = inode};
    strncpy(change.from, from, sizeof change.from - 1);
    strncpy(change.to, to, sizeof change.to - 1);
    apply(sim->seen, &change);
    if (sim->change_count == CHANGES) { /* the oldest reaches the disk by itself */
        apply(sim->durable, &sim->changes[0]);
        memmove(sim->changes, sim->changes + 1, --sim->change_count * sizeof change);
    }
    sim->changes[sim->change_count++] = change;
}

/* ---- bytes ---- */

static struct inode *make_inode(struct dp_sim_disk *sim)
{
    struct inode *inode = calloc(1, sizeof *inode);
    if (!inode)
        abort();
    if (sim->inode_count == sim->inode_room) {
        sim->inode_room = sim->inode_room ? 2 * sim->inode_room : 16;
        sim->inodes = grown(sim->inodes, sim->inode_room * sizeof(struct inode *));
    }
    sim->inodes[sim->inode_count++] = inode;
    return inode;
}

static bool is_named(const struct name *names, const struct inode *inode)
{
    for (size_t i = 0; i < NAMES; i++)
        if (names[i].text[0] && names[i].inode == inode)
            return true;
    return false;
}

/* Those that nothing can show any more. All changes of the directory are durable. */
static void free_nameless(struct dp_sim_disk *sim)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim->inode_count; i++) {
        struct inode *inode = sim->inodes[i];
        if (inode->opens > 0 || is_named(sim->seen, inode) || is_named(sim->durable, inode))
            sim->inodes[kept++] = inode;
        else
            free_inode(inode);
    }
    sim->inode_count = kept;
}

static void resize(struct inode *inode, uint64_t bytes)
{
    uint64_t room = (bytes + SECTOR - 1) / SECTOR * SECTOR;
    if (room > inode->room) {
        inode->seen = grown(inode->seen, room);
        inode->durable = grown(inode->durable, room);
        inode->dirty = grown(inode->dirty, room / SECTOR);
        memset(inode->seen + inode->room, 0, room - inode->room);
        memset(inode->durable + inode->room, 0, room - inode->room);
        memset(inode->dirty + inode->room / SECTOR, 0, (room - inode->room) / SECTOR);
        inode->room = room;
    }
    inode->bytes = bytes;
}

static uint64_t used(const struct dp_sim_disk *sim)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < NAMES; i++)
        if (sim->seen[i].text[0])
            bytes += sim->seen[i].inode->bytes;
    return bytes;
}

static enum dp_status grow(struct dp_sim_disk *sim, struct inode *inode, uint64_t bytes, struct dp_error *err)
{
    if (bytes <= inode->bytes)
        return DP_OK;
    if (bytes - inode->bytes > sim->capacity - (used(sim) < sim->capacity ? used(sim) : sim->capacity))
        return dp_fail(err, DP_FULL, "simulated disk: no space left");
    resize(inode, bytes);
    inode->size_dirty = true;
    return DP_OK;
}

static void put(struct inode *inode, uint64_t at, const struct dp_disk_piece *pieces, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].bytes == 0)
            continue;
        memcpy(inode->seen + at, pieces[i].data, pieces[i].bytes);
        memset(inode->dirty + at / SECTOR, 1, (at + pieces[i].bytes - 1) / SECTOR - at / SECTOR + 1);
        at += pieces[i].bytes;
    }
}

static void make_durable(struct inode *inode)
{
    for (uint64_t s = 0; s < inode->room / SECTOR; s++)
        if (inode->dirty[s])
            memcpy(inode->durable + s * SECTOR, inode->seen + s * SECTOR, SECTOR);
    if (inode->room)
        memset(inode->dirty, 0, inode->room / SECTOR);
    inode->durable_bytes = inode->size_dirty ? inode->bytes : inode->durable_bytes;
    inode->size_dirty = false;
}

/* Power is gone: what of the inode is there afterwards. */
static void lose(struct dp_sim_disk *sim, struct inode *inode, enum dp_sim_survival survival)
{
    /* How many of the sectors survive: with a half alone, long runs would never survive. */
    uint64_t share = draw(sim) % 3;
    for (uint64_t s = 0; s < inode->room / SECTOR; s++) {
        bool kept =
            survival == DP_SIM_ALL || (survival == DP_SIM_RANDOM && draw(sim) % 8 < (share == 0   ? 4
                                                                                     : share == 1 ? 7
                                                                                                  : 1));
        if (inode->dirty[s] && kept)
            memcpy(inode->durable + s * SECTOR, inode->seen + s * SECTOR, SECTOR);
        inode->dirty[s] = 0;
    }
    if (inode->size_dirty && (survival == DP_SIM_ALL || (survival == DP_SIM_RANDOM && draw(sim) % 2)))
        inode->durable_bytes = inode->bytes;
    inode->size_dirty = false;
    inode->bytes = inode->durable_bytes;
    uint64_t kept = inode->bytes < inode->room ? inode->bytes : inode->room;
    if (inode->room)
        memset(inode->durable + kept, 0, inode->room - kept);
    if (inode->room)
        memcpy(inode->seen, inode->durable, inode->room);
}

/* ---- operations ---- */

/* Locks; not DP_OK: the operation is not done (the lock is held all the same). `cut`: power goes in it. */
static enum dp_status begin(struct dp_sim_disk *sim, enum dp_sim_operation kind, bool *cut,
                            struct dp_error *err)
{
    (void)pthread_mutex_lock(&sim->lock);
    *cut = false;
    if (sim->off)
        return dp_fail(err, DP_IO, "simulated disk: power is off");
    sim->operations++;
    if (sim->cut_at && --sim->cut_at == 0)
        *cut = sim->off = true;
    if (!*cut && sim->fail[kind].nth && --sim->fail[kind].nth == 0) {
        if (sim->fail[kind].times > 1) {
            sim->fail[kind].times--;
            sim->fail[kind].nth = 1;
        }
        return dp_fail(err, sim->fail[kind].status, "simulated disk: injected failure");
    }
    return DP_OK;
}

static enum dp_status end(struct dp_sim_disk *sim, enum dp_status st, bool cut, struct dp_error *err)
{
    (void)pthread_mutex_unlock(&sim->lock);
    return cut ? dp_fail(err, DP_IO, "simulated disk: power went") : st;
}

static enum dp_status dead(const struct dp_sim_disk *sim, const struct dp_file *file, struct dp_error *err)
{
    if (file->life != sim->life)
        return dp_fail(err, DP_IO, "simulated disk: the file was opened before the power went");
    return DP_OK;
}

static enum dp_status sim_open(void *self, const char *name, _Bool create, struct dp_file **out,
                               struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    bool cut = false;
    enum dp_status st = DP_OK;
    (void)pthread_mutex_lock(&sim->lock);
    struct name *found = strlen(name) < NAME_MAX_ && *name ? find(sim->seen, name) : NULL;
    bool off = sim->off;
    (void)pthread_mutex_unlock(&sim->lock);
    if (off)
        return dp_fail(err, DP_IO, "simulated disk: power is off");
    if (!found && !create)
        return dp_fail(err, DP_NOT_FOUND, "simulated disk: open %s: no such file", name);
    if (!found) {
        st = begin(sim, DP_SIM_CREATE, &cut, err);
        if (st == DP_OK)
            change_names(sim, "", name, make_inode(sim));
    } else {
        (void)pthread_mutex_lock(&sim->lock);
    }
    if (st == DP_OK && !cut) {
        struct dp_file *file = grown(NULL, sizeof *file);
        *file = (struct dp_file){.inode = find(sim->seen, name)->inode, .life = sim->life};
        file->inode->opens++;
        *out = file;
    }
    return end(sim, st, cut, err);
}

static void sim_close(void *self, struct dp_file *file)
{
    struct dp_sim_disk *sim = self;
    (void)pthread_mutex_lock(&sim->lock);
    file->inode->opens--;
    (void)pthread_mutex_unlock(&sim->lock);
    free(file);
}

static enum dp_status sim_size(void *self, struct dp_file *file, uint64_t *bytes, struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    (void)pthread_mutex_lock(&sim->lock);
    enum dp_status st = sim->off ? dp_fail(err, DP_IO, "simulated disk: power is off") : dead(sim, file, err);
    *bytes = file->inode->bytes;
    return end(sim, st, false, err);
}

static enum dp_status sim_reserve(void *self, struct dp_file *file, uint64_t bytes, struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    bool cut;
    enum dp_status st = begin(sim, DP_SIM_RESERVE, &cut, err);
    if (st == DP_OK)
        st = dead(sim, file, err);
    if (st == DP_OK)
        st = grow(sim, file->inode, bytes, err);
    return end(sim, st, cut, err);
}

static enum dp_status sim_read(void *self, struct dp_file *file, uint64_t at, void *to, size_t bytes,
                               struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    (void)pthread_mutex_lock(&sim->lock);
    enum dp_status st = sim->off ? dp_fail(err, DP_IO, "simulated disk: power is off") : dead(sim, file, err);
    if (st == DP_OK && (at > file->inode->bytes || bytes > file->inode->bytes - at))
        st = dp_fail(err, DP_IO, "simulated disk: read beyond the end");
    if (st == DP_OK && bytes > 0)
        memcpy(to, file->inode->seen + at, bytes);
    return end(sim, st, false, err);
}

static enum dp_status sim_write(void *self, struct dp_file *file, uint64_t at,
                                const struct dp_disk_piece *pieces, uint32_t count, struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    bool cut;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    enum dp_status st = begin(sim, DP_SIM_WRITE, &cut, err);
    if (st == DP_OK)
        st = dead(sim, file, err);
    if (st == DP_OK)
        st = grow(sim, file->inode, at + bytes, err);
    if (st == DP_OK)
        put(file->inode, at, pieces, count);
    return end(sim, st, cut, err);
}

static enum dp_status sim_sync(void *self, struct dp_file *file, struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    bool cut;
    enum dp_status st = begin(sim, DP_SIM_SYNC, &cut, err);
    struct inode *inode = file->inode;
    if (st != DP_OK && !sim->off && inode->room) { /* injected */
        bool old = draw(sim) % 2;
        for (uint64_t s = 0; s < inode->room / SECTOR; s++)
            if (inode->dirty[s] && old)
                memcpy(inode->seen + s * SECTOR, inode->durable + s * SECTOR, SECTOR);
        memset(inode->dirty, 0, inode->room / SECTOR);
    }
    if (st == DP_OK)
        st = dead(sim, file, err);
    if (st == DP_OK && (!cut || draw(sim) % 2))
        make_durable(inode);
    return end(sim, st, cut, err);
}

static enum dp_status sim_rename(void *self, const char *from, const char *to, struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    bool cut;
    enum dp_status st = begin(sim, DP_SIM_RENAME, &cut, err);
    struct name *found = find(sim->seen, from);
    if (st == DP_OK && !found)
        st = dp_fail(err, DP_NOT_FOUND, "simulated disk: rename %s: no such file", from);
    if (st == DP_OK)
        change_names(sim, from, to, found->inode);
    return end(sim, st, cut, err);
}

static enum dp_status sim_remove(void *self, const char *name, struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    bool cut;
    enum dp_status st = begin(sim, DP_SIM_REMOVE, &cut, err);
    struct name *found = find(sim->seen, name);
    if (st == DP_OK && !found)
        st = dp_fail(err, DP_NOT_FOUND, "simulated disk: remove %s: no such file", name);
    if (st == DP_OK)
        change_names(sim, name, "", found->inode);
    return end(sim, st, cut, err);
}

static enum dp_status sim_sync_directory(void *self, struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    bool cut;
    enum dp_status st = begin(sim, DP_SIM_SYNC_DIRECTORY, &cut, err);
    if (st == DP_OK && (!cut || draw(sim) % 2)) {
        memcpy(sim->durable, sim->seen, sizeof sim->durable);
        sim->change_count = 0;
        free_nameless(sim);
    }
    return end(sim, st, cut, err);
}

static enum dp_status sim_list(void *self, void (*visit)(void *context, const char *name), void *context,
                               struct dp_error *err)
{
    struct dp_sim_disk *sim = self;
    (void)pthread_mutex_lock(&sim->lock);
    enum dp_status st = sim->off ? dp_fail(err, DP_IO, "simulated disk: power is off") : DP_OK;
    size_t first = draw(sim) % NAMES;
    for (size_t i = 0; st == DP_OK && i < NAMES; i++)
        if (sim->seen[(first + i) % NAMES].text[0])
            visit(context, sim->seen[(first + i) % NAMES].text);
    return end(sim, st, false, err);
}

struct dp_disk dp_sim_disk_interface(struct dp_sim_disk *sim)
{
    return (struct dp_disk){
        .open = sim_open,
        .close = sim_close,
        .size = sim_size,
        .reserve = sim_reserve,
        .read = sim_read,
        .write = sim_write,
        .sync = sim_sync,
        .rename = sim_rename,
        .remove = sim_remove,
        .sync_directory = sim_sync_directory,
        .list = sim_list,
        .self = sim,
    };
}

/* ---- the test's hand ---- */

void dp_sim_disk_cut_at(struct dp_sim_disk *sim, uint64_t operation)
{
    (void)pthread_mutex_lock(&sim->lock);
    sim->cut_at = operation;
    (void)pthread_mutex_unlock(&sim->lock);
}

bool dp_sim_disk_is_off(struct dp_sim_disk *sim)
{
    (void)pthread_mutex_lock(&sim->lock);
    bool off = sim->off;
    (void)pthread_mutex_unlock(&sim->lock);
    return off;
}

uint64_t dp_sim_disk_operations(struct dp_sim_disk *sim)
{
    (void)pthread_mutex_lock(&sim->lock);
    uint64_t operations = sim->operations;
    (void)pthread_mutex_unlock(&sim->lock);
    return operations;
}

void dp_sim_disk_restart(struct dp_sim_disk *sim, enum dp_sim_survival survival)
{
    (void)pthread_mutex_lock(&sim->lock);
    sim->off = false;
    sim->cut_at = 0;
    sim->life++;
    memset(sim->fail, 0, sizeof sim->fail);
    if (survival != DP_SIM_PROCESS) {
        bool in_order = draw(sim) % 2;
        size_t first = draw(sim) % (sim->change_count + 1);
        for (size_t i = 0; i < sim->change_count; i++)
            if (survival == DP_SIM_ALL ||
                (survival == DP_SIM_RANDOM && (in_order ? i < first : draw(sim) % 2 == 0)))
                apply(sim->durable, &sim->changes[i]);
        sim->change_count = 0;
        memcpy(sim->seen, sim->durable, sizeof sim->seen);
        for (size_t i = 0; i < sim->inode_count; i++)
            lose(sim, sim->inodes[i], survival);
    }
    (void)pthread_mutex_unlock(&sim->lock);
}

void dp_sim_disk_fail(struct dp_sim_disk *sim, enum dp_sim_operation kind, uint64_t nth, uint64_t times,
                      enum dp_status status)
{
    (void)pthread_mutex_lock(&sim->lock);
    sim->fail[kind].nth = nth;
    sim->fail[kind].times = times;
    sim->fail[kind].status = status;
    (void)pthread_mutex_unlock(&sim->lock);
}

void dp_sim_disk_capacity(struct dp_sim_disk *sim, uint64_t bytes)
{
    (void)pthread_mutex_lock(&sim->lock);
    sim->capacity = bytes;
    (void)pthread_mutex_unlock(&sim->lock);
}

uint64_t dp_sim_disk_used(struct dp_sim_disk *sim)
{
    (void)pthread_mutex_lock(&sim->lock);
    uint64_t bytes = used(sim);
    (void)pthread_mutex_unlock(&sim->lock);
    return bytes;
}

uint8_t *dp_sim_disk_bytes(struct dp_sim_disk *sim, const char *name, uint64_t *bytes)
{
    (void)pthread_mutex_lock(&sim->lock);
    struct name *found = find(sim->seen, name);
    uint8_t *seen = found ? found->inode->seen : NULL;
    *bytes = found ? found->inode->bytes : 0;
    (void)pthread_mutex_unlock(&sim->lock);
    return seen;
}
