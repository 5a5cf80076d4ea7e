#include "tests/fault/disk_model.h"

#include "tests/fault/disk_file.h"
#include "tests/fault/disk_names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FDS       4096
#define SYNCS_MAX 64
#define PAGE      4096u
#define ROOT      0u

/* A file or a directory, under any number of names. */
struct node {
    bool is_directory;
    struct dp_disk_file file;
    struct dp_disk_names names;
    uint64_t late; /* planted: the moment of its last sync */
};

struct sync {
    uint64_t number, moment;
    uint32_t node;
};

struct dp_disk_model {
    enum dp_disk_plant plant;
    const uint8_t *log;
    size_t bytes, at;
    uint64_t moment; /* records done */
    struct node *node;
    uint32_t nodes, room;
    struct {
        uint32_t node;
        enum dp_disk_sort sort;
    } open[FDS];
    struct sync sync[SYNCS_MAX];
    uint32_t syncs;
};

const char *dp_disk_survival_name(enum dp_disk_survival survival)
{
    static const char *const name[DP_DISK_SURVIVALS] = {"nothing", "all", "random"};
    return name[survival];
}

const char *dp_disk_plant_name(enum dp_disk_plant plant)
{
    static const char *const name[DP_DISK_PLANTS] = {"sound",        "no-journal-sync", "late-journal-sync",
                                                     "no-sst-names", "no-sst-sync",     "no-journal-names"};
    return name[plant];
}

static bool ends(const char *text, const char *with)
{
    size_t len = strlen(text), end = strlen(with);
    return len > end && strcmp(text + len - end, with) == 0;
}

static enum dp_disk_sort sort_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strncmp(name, "journal-", 8) == 0)
        return DP_DISK_JOURNAL;
    if (strncmp(name, "ingest-tmp", 10) == 0)
        return DP_DISK_INGEST;
    if (strncmp(name, "MANIFEST", 8) == 0)
        return DP_DISK_MANIFEST;
    if (ends(name, ".sst"))
        return DP_DISK_SST;
    if (strncmp(name, "marks", 5) == 0)
        return DP_DISK_MARKS;
    return ends(name, ".dbtmp") ? DP_DISK_TEMPORARY : DP_DISK_OTHER;
}

/* ---- nodes and paths */

static uint32_t new_node(struct dp_disk_model *model, bool is_directory)
{
    if (model->nodes == model->room) {
        model->room = model->room ? 2 * model->room : 256;
        model->node = realloc(model->node, model->room * sizeof *model->node);
        DP_ASSERT(model->node);
    }
    model->node[model->nodes] = (struct node){.is_directory = is_directory};
    return model->nodes++;
}

/* The directory that a path stands in, and its last part. */
static enum dp_status find_parent(const struct dp_disk_model *model, const char *path, uint32_t *parent,
                                  const char **last, struct dp_error *err)
{
    uint32_t at = ROOT;
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        char part[DP_DISK_NAME_MAX];
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        at = dp_disk_names_find(&model->node[at].names, part);
        if (at == DP_DISK_NO_FILE || !model->node[at].is_directory)
            return dp_fail(err, DP_DATA, "record %" PRIu64 ": no directory '%s' before '%s'", model->moment,
                           part, path);
    }
    if (!*path || strlen(path) >= DP_DISK_NAME_MAX)
        return dp_fail(err, DP_DATA, "record %" PRIu64 ": the name '%s'", model->moment, path);
    *parent = at;
    *last = path;
    return DP_OK;
}

static enum dp_status change_name(struct dp_disk_model *model, uint32_t parent, const char *from,
                                  const char *to, uint32_t file)
{
    struct dp_disk_name_change change = {.moment = model->moment, .file = file};
    (void)snprintf(change.from, sizeof change.from, "%s", from);
    (void)snprintf(change.to, sizeof change.to, "%s", to);
    dp_disk_names_change(&model->node[parent].names, &change);
    return DP_OK;
}

/* ---- records */

static enum dp_status do_open(struct dp_disk_model *model, const struct dp_record *record, const char *path,
                              struct dp_error *err)
{
    uint32_t parent = ROOT, file = ROOT;
    const char *last = "";
    if (*path) {
        enum dp_status st = find_parent(model, path, &parent, &last, err);
        if (st != DP_OK)
            return st;
        file = dp_disk_names_find(&model->node[parent].names, last);
    }
    if (record->at == DP_RECORD_OPEN_CREATED && file == DP_DISK_NO_FILE) {
        file = new_node(model, false);
        (void)change_name(model, parent, "", last, file);
    }
    if (file == DP_DISK_NO_FILE || record->fd < 0 || record->fd >= FDS)
        return dp_fail(err, DP_DATA, "record %" PRIu64 ": '%s' was opened and is not known", model->moment,
                       path);
    if (record->at == DP_RECORD_OPEN_EMPTIED) {
        struct dp_disk_change cut = {.moment = model->moment, .kind = DP_RECORD_CUT};
        dp_disk_file_change(&model->node[file].file, &cut);
    }
    model->open[record->fd].node = file;
    model->open[record->fd].sort = sort_of(last);
    return DP_OK;
}

static enum dp_status do_names(struct dp_disk_model *model, const struct dp_record *record, const char *path,
                               const char *other, struct dp_error *err)
{
    uint32_t parent, to_parent, file;
    const char *last, *to_last;
    enum dp_status st = find_parent(model, path, &parent, &last, err);
    if (st != DP_OK)
        return st;
    file = dp_disk_names_find(&model->node[parent].names, last);
    if (record->kind == DP_RECORD_MAKE)
        return change_name(model, parent, "", last, new_node(model, true));
    if (file == DP_DISK_NO_FILE)
        return dp_fail(err, DP_DATA, "record %" PRIu64 ": '%s' is not known", model->moment, path);
    if (record->kind == DP_RECORD_REMOVE || record->kind == DP_RECORD_UNMAKE)
        return change_name(model, parent, last, "", file);
    st = find_parent(model, other, &to_parent, &to_last, err);
    if (st == DP_OK && parent != to_parent)
        st = dp_fail(err, DP_UNSUPPORTED, "record %" PRIu64 ": '%s' to '%s', another directory",
                     model->moment, path, other);
    if (st == DP_OK)
        st = change_name(model, parent, record->kind == DP_RECORD_RENAME ? last : "", to_last, file);
    return st;
}

static void begin_sync(struct dp_disk_model *model, const struct dp_record *record)
{
    enum dp_disk_sort sort = model->open[record->fd].sort;
    bool is_journal = sort == DP_DISK_JOURNAL;
    uint32_t node = model->open[record->fd].node;
    uint64_t moment = model->moment;
    DP_ASSERT(model->syncs < SYNCS_MAX);
    if ((model->plant == DP_DISK_NO_JOURNAL_SYNC && is_journal) ||
        (model->plant == DP_DISK_NO_SST_SYNC && (sort == DP_DISK_INGEST || sort == DP_DISK_SST)))
        return;
    if (model->plant == DP_DISK_LATE_JOURNAL_SYNC && is_journal) {
        moment = model->node[node].late;
        model->node[node].late = model->moment;
    }
    model->sync[model->syncs++] = (struct sync){.number = record->at, .moment = moment, .node = node};
}

static bool is_sst(const struct dp_disk_name_change *change)
{
    return sort_of(change->to) == DP_DISK_SST;
}

static bool is_segment(const struct dp_disk_name_change *change)
{
    return sort_of(change->to) == DP_DISK_JOURNAL;
}

static void end_sync(struct dp_disk_model *model, const struct dp_record *record)
{
    uint32_t i = 0;
    while (i < model->syncs && model->sync[i].number != record->at)
        i++;
    if (i == model->syncs)
        return; /* a planted one */
    struct node *node = &model->node[model->sync[i].node];
    if (node->is_directory)
        dp_disk_names_sync(&node->names, model->sync[i].moment,
                           model->plant == DP_DISK_NO_SST_NAMES       ? is_sst
                           : model->plant == DP_DISK_NO_JOURNAL_NAMES ? is_segment
                                                                      : NULL);
    else
        dp_disk_file_sync(&node->file, model->sync[i].moment);
    model->sync[i] = model->sync[--model->syncs];
}

static void do_change(struct dp_disk_model *model, const struct dp_record *record, const uint8_t *data)
{
    struct dp_disk_change change = {.moment = model->moment,
                                    .kind = (enum dp_record_kind)record->kind,
                                    .at = record->at,
                                    .data = data,
                                    .bytes = record->data_bytes};
    dp_disk_file_change(&model->node[model->open[record->fd].node].file, &change);
}

static void forget_process(struct dp_disk_model *model)
{
    model->syncs = 0;
    for (int i = 0; i < FDS; i++)
        model->open[i].node = DP_DISK_NO_FILE;
}

static enum dp_status do_record(struct dp_disk_model *model, const struct dp_record *record, const char *name,
                                const char *other, const uint8_t *data, struct dp_error *err)
{
    bool needs_file = record->kind == DP_RECORD_WRITE || record->kind == DP_RECORD_CUT ||
                      record->kind == DP_RECORD_RESERVE || record->kind == DP_RECORD_SYNC_BEGIN;
    if (needs_file &&
        (record->fd < 0 || record->fd >= FDS || model->open[record->fd].node == DP_DISK_NO_FILE))
        return dp_fail(err, DP_DATA, "record %" PRIu64 " (kind %" PRIu32 "): file %d is not open",
                       model->moment, record->kind, record->fd);
    switch (record->kind) {
    case DP_RECORD_START:
        forget_process(model);
        return DP_OK;
    case DP_RECORD_OPEN:
        return do_open(model, record, name, err);
    case DP_RECORD_CLOSE:
        model->open[record->fd].node = DP_DISK_NO_FILE;
        return DP_OK;
    case DP_RECORD_WRITE:
    case DP_RECORD_CUT:
    case DP_RECORD_RESERVE:
        do_change(model, record, data);
        return DP_OK;
    case DP_RECORD_SYNC_BEGIN:
        begin_sync(model, record);
        return DP_OK;
    case DP_RECORD_SYNC_END:
        end_sync(model, record);
        return DP_OK;
    case DP_RECORD_RENAME:
    case DP_RECORD_LINK:
    case DP_RECORD_REMOVE:
    case DP_RECORD_MAKE:
    case DP_RECORD_UNMAKE:
        return do_names(model, record, name, other, err);
    case DP_RECORD_SENT:
    case DP_RECORD_ACKED:
        return DP_OK;
    default:
        return dp_fail(err, DP_UNSUPPORTED, "record %" PRIu64 ": %s is not followed", model->moment, name);
    }
}

enum dp_status dp_disk_model_step(struct dp_disk_model *model, struct dp_disk_step *out, struct dp_error *err)
{
    struct dp_record record;
    char name[PAGE], other[PAGE];
    if (model->at == model->bytes)
        return dp_fail(err, DP_NOT_FOUND, "the log ends");
    if (model->bytes - model->at < sizeof record)
        return dp_fail(err, DP_DATA, "the log ends within record %" PRIu64, model->moment);
    memcpy(&record, model->log + model->at, sizeof record);
    const uint8_t *behind = model->log + model->at + sizeof record;
    size_t left = model->bytes - model->at - sizeof record;
    if (record.magic != DP_RECORD_MAGIC || record.name_bytes >= PAGE || record.other_bytes >= PAGE ||
        record.data_bytes > left || record.name_bytes + record.other_bytes > left - record.data_bytes)
        return dp_fail(err, DP_DATA, "record %" PRIu64 " is none", model->moment);
    memcpy(name, behind, record.name_bytes);
    name[record.name_bytes] = '\0';
    memcpy(other, behind + record.name_bytes, record.other_bytes);
    other[record.other_bytes] = '\0';
    bool is_named = record.name_bytes > 0, is_open = record.fd >= 0 && record.fd < FDS;
    *out = (struct dp_disk_step){.record = record};
    out->sort = is_named ? sort_of(name) : is_open ? model->open[record.fd].sort : DP_DISK_OTHER;
    model->at += sizeof record + record.name_bytes + record.other_bytes + record.data_bytes;
    model->moment++;
    return do_record(model, &record, name, other, behind + record.name_bytes + record.other_bytes, err);
}

/* ---- images */

static enum dp_status write_file(const char *path, const struct dp_disk_bytes *bytes, struct dp_error *err)
{
    static const uint8_t zeros[PAGE];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool good = fd >= 0 && ftruncate(fd, (off_t)bytes->size) == 0;
    for (size_t at = 0; good && at < bytes->size; at += PAGE) { /* zeros are holes */
        size_t n = bytes->size - at < PAGE ? bytes->size - at : PAGE;
        if (memcmp(bytes->data + at, zeros, n) != 0)
            good = pwrite(fd, bytes->data + at, n, (off_t)at) == (ssize_t)n;
    }
    enum dp_status st = good ? DP_OK : dp_fail(err, DP_IO, "image: %s: %s", path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return st;
}

static enum dp_status write_directory(const struct dp_disk_model *model, uint32_t directory,
                                      enum dp_disk_survival survival, uint64_t seed, const char *path,
                                      struct dp_error *err)
{
    struct dp_disk_entries entries;
    enum dp_status st = DP_OK;
    dp_disk_names_survive(&model->node[directory].names, survival, dp_disk_draw(seed, directory), &entries);
    for (size_t i = 0; st == DP_OK && i < entries.count; i++) {
        uint32_t number = entries.entry[i].file;
        const struct node *node = &model->node[number];
        char inside[PAGE];
        if (snprintf(inside, sizeof inside, "%s/%s", path, entries.entry[i].name) >= (int)sizeof inside) {
            st = dp_fail(err, DP_ARGUMENT, "image: the path %s is too long", path);
        } else if (node->is_directory) {
            st = mkdir(inside, 0777) == 0 ? DP_OK
                                          : dp_fail(err, DP_IO, "image: %s: %s", inside, strerror(errno));
            if (st == DP_OK)
                st = write_directory(model, number, survival, seed, inside, err);
        } else {
            struct dp_disk_bytes bytes;
            dp_disk_file_survives(&node->file, survival, dp_disk_draw(seed, number), &bytes);
            st = write_file(inside, &bytes, err);
            free(bytes.data);
        }
    }
    free(entries.entry);
    return st;
}

enum dp_status dp_disk_model_image(const struct dp_disk_model *model, enum dp_disk_survival survival,
                                   uint64_t seed, const char *directory, struct dp_error *err)
{
    return write_directory(model, ROOT, survival, seed, directory, err);
}

enum dp_status dp_disk_model_open(const char *log, enum dp_disk_plant plant, struct dp_disk_model **out,
                                  struct dp_error *err)
{
    struct stat found;
    enum dp_status st = DP_OK;
    struct dp_disk_model *model = calloc(1, sizeof *model);
    DP_ASSERT(model);
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found) != 0 || found.st_size == 0)
        st = dp_fail(err, DP_IO, "%s: %s", log, fd < 0 ? strerror(errno) : "nothing was recorded");
    if (st == DP_OK) {
        void *map = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
            st = dp_fail(err, DP_IO, "%s: %s", log, strerror(errno));
        else
            model->log = map;
    }
    if (fd >= 0)
        (void)close(fd);
    if (st == DP_OK) {
        model->bytes = (size_t)found.st_size;
        model->plant = plant;
        (void)new_node(model, true);
        forget_process(model);
        *out = model;
    } else {
        free(model);
    }
    return st;
}

void dp_disk_model_close(struct dp_disk_model **model)
{
    struct dp_disk_model *m = *model;
    if (!m)
        return;
    for (uint32_t i = 0; i < m->nodes; i++) {
        dp_disk_file_free(&m->node[i].file);
        dp_disk_names_free(&m->node[i].names);
    }
    if (m->log)
        (void)munmap((void *)(uintptr_t)m->log, m->bytes);
    free(m->node);
    free(m);
    *model = NULL;
}
