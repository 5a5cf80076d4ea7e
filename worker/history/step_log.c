#define _GNU_SOURCE /* asprintf */
#include "worker/history/step_log.h"

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/env/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION    2 /* 1 was binary */
#define DEAD_BYTES (64u << 10)

static const char *const note_names[] = {
    [DP_STEP_TOTALS] = "totals", [DP_STEP_TEST] = "test", [DP_STEP_VALIDATION] = "validation"};
#define NOTES (sizeof note_names / sizeof note_names[0])

struct dp_step_log {
    char path[PATH_MAX];
    int fd; /* -1: nothing is written */
    struct dp_step_log_id id;
    json_t *head, *lines;   /* NULL: none; an array: of what was read */
    uint64_t size, tidy_at; /* of the file; not before it has this size */
};

/* ---- lines */

static bool place_of(const json_t *line, struct dp_step_place *out)
{
    const json_t *at = json_object_get(line, "at"), *epoch = json_array_get(at, 0),
                 *groups = json_array_get(at, 1);
    if (!json_is_integer(epoch) || !json_is_integer(groups) || json_integer_value(epoch) < 0 ||
        json_integer_value(epoch) > UINT32_MAX || json_integer_value(groups) < 0)
        return false;
    *out = (struct dp_step_place){.epoch = (uint32_t)json_integer_value(epoch),
                                  .groups = (uint64_t)json_integer_value(groups)};
    return true;
}

static bool is_after(struct dp_step_place a, struct dp_step_place b)
{
    return a.epoch > b.epoch || (a.epoch == b.epoch && a.groups > b.groups);
}

/* false: it is no sum. */
static bool sum_of(const json_t *line, struct dp_step_sum *out)
{
    json_t *sum = json_object_get(line, "sum");
    struct dp_step_place place;
    json_int_t pushes, examples;
    double loss_sum, begun, seconds;
    if (!place_of(line, &place) || (place.epoch == 0 && place.groups == 0) ||
        json_unpack(sum, "{s:I,s:I,s:F,s:F,s:F}", "pushes", &pushes, "examples", &examples, "loss", &loss_sum,
                    "begun", &begun, "seconds", &seconds) != 0)
        return false;
    *out = (struct dp_step_sum){.epoch = place.epoch - (place.groups == 0),
                                .groups = place.groups,
                                .pushes = (uint64_t)pushes,
                                .examples = (uint64_t)examples,
                                .loss_sum = loss_sum,
                                .begun = begun,
                                .seconds = seconds};
    return true;
}

static json_t *sum_line(const struct dp_step_sum *sum, bool ended)
{
    return json_pack("{s:[I,I],s:{s:I,s:I,s:f,s:f,s:f}}", "at", (json_int_t)sum->epoch + ended,
                     ended ? (json_int_t)0 : (json_int_t)sum->groups, "sum", "pushes",
                     (json_int_t)sum->pushes, "examples", (json_int_t)sum->examples, "loss", sum->loss_sum,
                     "begun", sum->begun, "seconds", sum->seconds);
}

/* Its value, and which it is; NULL: it is no note. */
static const json_t *note_of(const json_t *line, enum dp_step_note *kind)
{
    for (size_t i = 0; i < NOTES; i++) {
        const json_t *value = json_object_get(line, note_names[i]);
        *kind = (enum dp_step_note)i;
        if (value)
            return value;
    }
    return NULL;
}

static json_t *head_line(const struct dp_step_log_id *id, const struct dp_step_log_plan *plan,
                         const char *settings)
{
    char cluster[24];
    (void)snprintf(cluster, sizeof cluster, "%" PRIx64, id->cluster);
    return json_pack("{s:i,s:s,s:I,s:I,s:I,s:I,s:s}", "step_log", VERSION, "cluster", cluster, "run",
                     (json_int_t)id->run, "worker", (json_int_t)id->worker, "epochs",
                     (json_int_t)plan->epochs, "groups", (json_int_t)plan->groups, "settings", settings);
}

/* ---- reading */

/* NULL: the end, or it is truncated or no JSON. */
static json_t *next_line(FILE *file)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t n = getline(&text, &room, file);
    json_t *line = n > 0 && text[n - 1] == '\n' ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    free(text);
    return line;
}

static bool is_line(const json_t *line)
{
    struct dp_step_place place;
    struct dp_step_sum sum;
    enum dp_step_note kind;
    return place_of(line, &place) && (sum_of(line, &sum) || note_of(line, &kind));
}

static struct dp_step_log_plan plan_of(const struct dp_step_log *log)
{
    return (struct dp_step_log_plan){.epochs = (uint32_t)dp_json_get_u64(log->head, "epochs"),
                                     .groups = dp_json_get_u64(log->head, "groups")};
}

/* DP_DATA: it is not this log. */
static enum dp_status parse(struct dp_step_log *log, FILE *file, struct dp_error *err)
{
    log->head = next_line(file);
    const char *settings = json_string_value(json_object_get(log->head, "settings"));
    const struct dp_step_log_plan plan = plan_of(log);
    json_t *own = head_line(&log->id, &plan, settings ? settings : "");
    bool ours = log->head && json_equal(own, log->head);
    json_decref(own);
    if (!ours)
        return dp_fail(err, DP_DATA, "'%.300s' is of another run, worker or version: its losses are ignored",
                       log->path);
    json_t *line;
    while ((line = next_line(file)) && is_line(line) && json_array_append(log->lines, line) == 0)
        json_decref(line);
    if (line || !feof(file))
        dp_log(DP_LOG_INFO, "'%s': what follows line %zu is truncated or damaged, and ignored", log->path,
               json_array_size(log->lines) + 1);
    json_decref(line);
    return DP_OK;
}

/* DP_NOT_FOUND, DP_DATA: as dp_step_log_place. */
static enum dp_status read_file(const char *path, const struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err)
{
    struct dp_step_log *log = calloc(1, sizeof *log);
    *out = log;
    if (!log || !(log->lines = json_array()))
        return dp_fail(err, DP_NOMEM, "no memory for a step log");
    log->fd = -1;
    log->id = *id;
    if (snprintf(log->path, sizeof log->path, "%s", path) >= (int)sizeof log->path)
        return dp_fail(err, DP_ARGUMENT, "path '%.200s...' is too long", path);
    FILE *file = fopen(path, "re");
    enum dp_status st = file ? parse(log, file, err) : DP_OK;
    if (!file || ferror(file))
        st = dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "cannot read '%.300s': %s", path,
                     strerror(errno));
    if (file)
        (void)fclose(file);
    return st;
}

enum dp_status dp_step_log_open(const char *path, const struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err)
{
    struct dp_error why = {0};
    enum dp_status st = read_file(path, id, out, &why);
    if (st == DP_DATA) {
        dp_log(DP_LOG_INFO, "%s", why.text);
        json_decref((*out)->head);
        (*out)->head = NULL;
    }
    if (st == DP_OK || st == DP_DATA || st == DP_NOT_FOUND)
        return DP_OK;
    dp_step_log_close(out);
    return dp_fail(err, st, "%s", why.text);
}

enum dp_status dp_step_log_place(const char *path, const struct dp_step_log_id *id,
                                 struct dp_step_log_plan *plan, struct dp_step_place *place,
                                 struct dp_error *err)
{
    struct dp_step_log *log = NULL;
    enum dp_status st = read_file(path, id, &log, err);
    size_t i;
    json_t *line;
    *place = (struct dp_step_place){0};
    if (st == DP_OK) {
        *plan = plan_of(log);
        json_array_foreach(log->lines, i, line)
        {
            struct dp_step_place at;
            if (place_of(line, &at) && is_after(at, *place))
                *place = at;
        }
    }
    dp_step_log_close(&log);
    return st;
}

void dp_step_log_close(struct dp_step_log **log)
{
    struct dp_step_log *l = *log;
    *log = NULL;
    if (!l)
        return;
    if (l->fd >= 0)
        (void)close(l->fd);
    json_decref(l->head);
    json_decref(l->lines);
    free(l);
}

/* ---- what was read */

const char *dp_step_log_settings(const struct dp_step_log *log)
{
    return json_string_value(json_object_get(log->head, "settings"));
}

void dp_step_log_visit(const struct dp_step_log *log, const struct dp_step_log_visitor *visitor)
{
    size_t i;
    json_t *line;
    json_array_foreach(log->lines, i, line)
    {
        struct dp_step_place place = {0};
        struct dp_step_sum sum;
        enum dp_step_note kind;
        const json_t *note = note_of(line, &kind);
        char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
        if (sum_of(line, &sum))
            visitor->sum(visitor->context, &sum);
        else if (text && place_of(line, &place))
            visitor->note(visitor->context, kind, place.epoch, text);
        free(text);
    }
}

/* ---- writing */

struct line_filter {
    const struct dp_step_log_cut *cut;
    uint32_t fine, epoch; /* the earliest that has a sum */
    bool has_sum, has_totals;
};

/* Lines come last first. */
static bool is_kept(struct line_filter *kept, const json_t *line)
{
    struct dp_step_place place = {0};
    struct dp_step_sum sum;
    enum dp_step_note kind;
    if (!place_of(line, &place) || is_after(place, kept->cut->place))
        return false;
    if (!sum_of(line, &sum)) {
        bool totals = note_of(line, &kind) && kind == DP_STEP_TOTALS, keep = !totals || !kept->has_totals;
        kept->has_totals = kept->has_totals || totals;
        return keep;
    }
    if ((kept->has_sum && sum.epoch >= kept->epoch && sum.epoch != kept->fine) ||
        (sum.epoch >= kept->cut->place.epoch && sum.pushes > kept->cut->made))
        return false;
    kept->has_sum = true;
    kept->epoch = sum.epoch;
    return true;
}

/* Leaves the lines that the servers have reached; of an epoch the last sum, or all where it is `fine`; the last
 * totals. */
static void cut_lines(struct dp_step_log *log, const struct dp_step_log_cut *cut, uint32_t fine)
{
    struct line_filter kept = {.cut = cut, .fine = fine};
    json_t *left = json_array(), *line;
    size_t i;
    for (i = json_array_size(log->lines); i-- > 0;)
        if (!is_kept(&kept, json_array_get(log->lines, i)))
            (void)json_array_set_new(log->lines, i, json_null());
    json_array_foreach(log->lines, i, line) if (!json_is_null(line))(void) json_array_append(left, line);
    json_decref(log->lines);
    log->lines = left;
}

/* Takes the line. With its end, malloc'd; NULL: no memory, or a number is not finite. */
static char *text_of(json_t *line)
{
    char *json = line ? json_dumps(line, JSON_COMPACT) : NULL, *text = NULL;
    if (!json || asprintf(&text, "%s\n", json) < 0)
        text = NULL;
    free(json);
    json_decref(line);
    return text;
}

/* The file with what `from` has; from here on lines are added to it. */
static enum dp_status rewrite(struct dp_step_log *log, const struct dp_step_log *from, struct dp_error *err)
{
    struct dp_atomic_file file;
    size_t i;
    json_t *line;
    enum dp_status st = dp_atomic_file_open(log->path, &file, err);
    if (st != DP_OK)
        return st;
    (void)json_dumpf(from->head, file.stream, JSON_COMPACT);
    (void)fputc('\n', file.stream);
    json_array_foreach(from->lines, i, line)
    {
        (void)json_dumpf(line, file.stream, JSON_COMPACT);
        (void)fputc('\n', file.stream);
    }
    uint64_t size = (uint64_t)ftello(file.stream);
    st = dp_atomic_file_commit(&file, err);
    int fd = st == DP_OK ? open(log->path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (st == DP_OK && fd < 0)
        st = dp_fail(err, DP_IO, "cannot write '%.300s': %s", log->path, strerror(errno));
    if (st != DP_OK)
        return st;
    if (log->fd >= 0)
        (void)close(log->fd);
    log->fd = fd;
    log->size = size;
    log->tidy_at = 2 * size + DEAD_BYTES;
    return DP_OK;
}

enum dp_status dp_step_log_begin(struct dp_step_log *log, const struct dp_step_log_cut *cut,
                                 const struct dp_step_log_plan *plan, const char *settings,
                                 struct dp_error *err)
{
    json_t *head = head_line(&log->id, plan, settings);
    if (!head)
        return dp_fail(err, DP_NOMEM, "no memory for a step log");
    json_decref(log->head);
    log->head = head;
    cut_lines(log, cut, UINT32_MAX);
    return rewrite(log, log, err);
}

/* The epoch has ended: those before it need one sum each. A training that is restored into the middle of it
 * needs more of it. */
static void tidy(struct dp_step_log *log, uint32_t epoch)
{
    const struct dp_step_log_cut all = {.place = {.epoch = UINT32_MAX}};
    struct dp_step_log *read = NULL;
    struct dp_error err = {0};
    log->tidy_at = 2 * log->size; /* for the next try, should this one fail */
    enum dp_status st = read_file(log->path, &log->id, &read, &err);
    if (st == DP_OK) {
        cut_lines(read, &all, epoch);
        st = rewrite(log, read, &err);
    }
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "cannot shorten the step log: %s; it grows", err.text);
    dp_step_log_close(&read);
}

/* Takes the line. */
static void add(struct dp_step_log *log, char *line)
{
    size_t n = line && log->fd >= 0 ? strlen(line) : 0, at = 0;
    while (at < n) {
        ssize_t written = write(log->fd, line + at, n - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            dp_log(DP_LOG_WARN,
                   "cannot write '%s': %s; training continues, but metrics will be missing if it is stopped "
                   "and resumed",
                   log->path, strerror(errno));
            (void)close(log->fd);
            log->fd = -1;
            break;
        }
        at += (size_t)written;
    }
    log->size += at;
    free(line);
}

void dp_step_log_sum(struct dp_step_log *log, const struct dp_step_sum *sum)
{
    DP_ASSERT(sum->groups > 0);
    add(log, text_of(sum_line(sum, false)));
}

void dp_step_log_end(struct dp_step_log *log, const struct dp_step_sum *sum)
{
    add(log, text_of(sum_line(sum, true)));
    if (log->fd >= 0 && log->size > log->tidy_at)
        tidy(log, sum->epoch);
}

void dp_step_log_note(struct dp_step_log *log, enum dp_step_note kind, struct dp_step_place place,
                      const char *text)
{
    char *line = NULL;
    if (asprintf(&line, "{\"at\":[%" PRIu32 ",%" PRIu64 "],\"%s\":%s}\n", place.epoch, place.groups,
                 note_names[kind], text) >= 0)
        add(log, line);
}
