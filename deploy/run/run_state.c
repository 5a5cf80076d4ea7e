#include "deploy/run/run_state.h"

#include "common/base/json.h"
#include "common/env/json_file.h"
#include "common/model/mix.h"
#include "worker/history/step_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (1u << 20)
#define PIECES      64u
#define STATE       "run.json"

/* ---- what files say */

static uint64_t hash_of(uint64_t hash, const unsigned char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
        hash = dp_mix(hash ^ word) + 1;
    }
    return dp_mix(hash + size);
}

/* false: less is there than was to be read. */
static bool hash_piece(int fd, uint64_t from, size_t size, unsigned char *piece, uint64_t *hash)
{
    for (size_t have = 0; have < size;) {
        ssize_t n = pread(fd, piece + have, size - have, (off_t)(from + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    *hash = hash_of(*hash, piece, size);
    return true;
}

struct dp_fingerprint dp_fingerprint(const char *path)
{
    struct dp_fingerprint print = {0};
    struct stat info;
    unsigned char *piece = malloc(PIECE_BYTES);
    /* A pipe is not even opened: its writer would take this for its reader. */
    bool file = path[0] && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    int fd = file ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (piece && fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        uint64_t bytes = (uint64_t)info.st_size, hash = bytes,
                 pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
        uint64_t taken = pieces < PIECES ? pieces : PIECES;
        bool good = true;
        for (uint64_t i = 0; good && i < taken; i++) { /* the first and the last are among them */
            uint64_t at = taken < 2 ? 0 : i * (pieces - 1) / (taken - 1) * PIECE_BYTES;
            good = hash_piece(fd, at, (size_t)(bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES), piece,
                              &hash);
        }
        print = (struct dp_fingerprint){.known = good, .bytes = bytes, .hash = hash};
    }
    if (fd >= 0)
        (void)close(fd);
    free(piece);
    return print;
}

static const struct {
    const char *key, *flag;
    size_t offset;
} files[DP_RUN_FILES] = {
    {"train", "--train", offsetof(struct dp_cluster_data, train)},
    {"train_labels", "--train labels", offsetof(struct dp_cluster_data, train_labels)},
    {"test", "--test", offsetof(struct dp_cluster_data, test)},
    {"test_labels", "--test labels", offsetof(struct dp_cluster_data, test_labels)},
    {"test_negatives", "--test negatives", offsetof(struct dp_cluster_data, test_negatives)},
    {"validation", "--validation", offsetof(struct dp_cluster_data, validation)},
    {"validation_labels", "--validation labels", offsetof(struct dp_cluster_data, validation_labels)},
    {"validation_negatives", "--validation negatives",
     offsetof(struct dp_cluster_data, validation_negatives)},
};

char *dp_run_state_file(const struct dp_cluster_data *data, size_t i, const char **flag)
{
    DP_ASSERT(i < DP_RUN_FILES);
    *flag = files[i].flag;
    return (char *)(uintptr_t)data + files[i].offset;
}

const char *dp_run_state_file_key(size_t i)
{
    DP_ASSERT(i < DP_RUN_FILES);
    return files[i].key;
}

void dp_run_state_take_files(struct dp_run_state *state, const struct dp_cluster_data *data)
{
    for (size_t i = 0; i < DP_RUN_FILES; i++)
        state->file[i] = dp_fingerprint((const char *)data + files[i].offset);
}

/* ---- run.json */

static struct dp_fingerprint print_in(const json_t *root, const char *key)
{
    const json_t *object = json_object_get(root, key), *bytes = json_object_get(object, "bytes");
    const char *hash = json_string_value(json_object_get(object, "hash"));
    char *end = NULL;
    if (!hash || !hash[0] || !json_is_integer(bytes))
        return (struct dp_fingerprint){0};
    uint64_t value = strtoull(hash, &end, 16);
    return (struct dp_fingerprint){
        .known = *end == '\0', .bytes = (uint64_t)json_integer_value(bytes), .hash = value};
}

struct dp_run_state dp_run_state_read(const struct dp_folder *folder, uint32_t run)
{
    struct dp_run_state state = {0};
    struct dp_error unheard = {0};
    char path[DP_PATH_MAX + 1];
    if (dp_folder_path(folder, path, &unheard, STATE) != DP_OK)
        return state;
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *finished = json_object_get(root, "finished"),
                 *restored = json_object_get(root, "restored_epoch");
    json_int_t epochs = json_integer_value(json_object_get(root, "epochs"));
    if (json_is_boolean(finished) && (uint64_t)json_integer_value(json_object_get(root, "run")) == run &&
        epochs >= 0 && epochs <= INT32_MAX)
        state =
            (struct dp_run_state){.known = true,
                                  .finished = json_is_true(finished),
                                  .epochs = (uint32_t)epochs,
                                  .mixed = (uint32_t)json_integer_value(json_object_get(root, "mixed")),
                                  .diverged = (uint32_t)json_integer_value(json_object_get(root, "diverged")),
                                  .restored = json_is_integer(restored),
                                  .restored_epoch = (uint32_t)json_integer_value(restored)};
    for (size_t i = 0; state.known && i < DP_RUN_FILES; i++)
        state.file[i] = print_in(root, files[i].key);
    json_decref(root);
    return state;
}

static void set_print(json_t *root, const char *key, const struct dp_fingerprint *print)
{
    char hash[24];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, print->hash);
    if (print->known)
        (void)json_object_set_new(root, key,
                                  json_pack("{s:I,s:s}", "bytes", (json_int_t)print->bytes, "hash", hash));
}

enum dp_status dp_run_state_write(const struct dp_folder *folder, uint32_t run,
                                  const struct dp_run_state *state, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, STATE);
    if (st != DP_OK)
        return st;
    json_t *root = json_pack("{s:I,s:b,s:I,s:I}", "run", (json_int_t)run, "finished", state->finished,
                             "epochs", (json_int_t)state->epochs, "mixed", (json_int_t)state->mixed);
    if (state->restored)
        (void)json_object_set_new(root, "restored_epoch", json_integer((json_int_t)state->restored_epoch));
    if (state->diverged)
        (void)json_object_set_new(root, "diverged", json_integer((json_int_t)state->diverged));
    for (size_t i = 0; i < DP_RUN_FILES; i++)
        set_print(root, files[i].key, &state->file[i]);
    return dp_json_file_write(path, &root, 10, err);
}

void dp_run_state_restored(struct dp_run_state *state, uint32_t run, bool known, uint32_t of, uint32_t epoch)
{
    state->restored = true;
    state->diverged = 0;
    state->restored_epoch = known && of == run ? epoch : 0;
}

static uint32_t epoch_of(const json_t *object, const char *key)
{
    json_int_t epoch = json_integer_value(json_object_get(object, key));
    return epoch > 0 && epoch <= INT32_MAX ? (uint32_t)epoch : 0;
}

struct dp_run_report dp_run_report_read(const char *report, uint32_t run)
{
    struct dp_run_report out = {0};
    json_t *root = report[0] ? json_load_file(report, 0, NULL) : NULL;
    if (json_integer_value(json_object_get(json_object_get(root, "settings"), "run")) == (json_int_t)run) {
        const json_t *diverged = json_object_get(root, "diverged");
        const char *kept = json_string_value(json_object_get(root, "kept")),
                   *set = json_string_value(json_object_get(diverged, "set"));
        out = (struct dp_run_report){.finished = json_is_true(json_object_get(root, "finished")),
                                     .epochs = (uint32_t)json_array_size(json_object_get(root, "epochs")),
                                     .examples = dp_json_get_u64(json_object_get(root, "data"), "examples"),
                                     .loss = json_number_value(json_object_get(diverged, "loss")),
                                     .rate = json_number_value(json_object_get(root, "advised_rate"))};
        *(out.finished ? &out.poor : &out.diverged) = epoch_of(diverged, "epoch");
        if (out.finished && kept && strcmp(kept, "best") == 0)
            out.kept = epoch_of(root, "kept_epoch");
        (void)snprintf(out.set, sizeof out.set, "%s", set ? set : "training");
    }
    json_decref(root);
    return out;
}

uint32_t dp_run_diverged(const struct dp_run_state *state, const char *report, uint32_t run)
{
    if (state->finished || state->restored)
        return 0;
    return state->diverged ? state->diverged : dp_run_report_read(report, run).diverged;
}

/* ---- how far */

/* Epochs that one worker has ended, and pushes in the one after. false: nothing is known. */
static bool place_of(const char *prefix, uint32_t worker, const struct dp_cluster *cluster,
                     struct dp_run_place *out)
{
    char path[DP_PATH_MAX + 32];
    struct dp_error unheard = {0};
    const struct dp_step_log_id id = {.cluster = cluster->id, .run = cluster->training.run, .worker = worker};
    struct dp_step_log_plan plan = {0};
    struct dp_step_place place = {0};
    if (dp_cluster_step_log(prefix, worker, path, sizeof path, &unheard) != DP_OK ||
        dp_step_log_place(path, &id, &plan, &place, &unheard) != DP_OK)
        return false;
    *out = (struct dp_run_place){.known = true,
                                 .epochs = plan.epochs,
                                 .whole = place.epoch,
                                 .group = place.groups,
                                 .groups = plan.groups};
    if (out->groups > 0 && out->group >= out->groups) {
        out->whole++;
        out->group = 0;
    }
    return out->groups > 0 && out->whole <= out->epochs;
}

static void keep_restored(const struct dp_folder *folder, const struct dp_cluster *cluster,
                          struct dp_run_place *place)
{
    const struct dp_run_state state = dp_run_state_read(folder, cluster->training.run);
    if (!place->known || !state.restored || place->whole <= state.restored_epoch)
        return;
    place->whole = state.restored_epoch;
    place->group = 0;
    place->share = fmin(place->share, (double)place->whole / place->epochs);
}

struct dp_run_place dp_run_place(const struct dp_folder *folder, const struct dp_cluster *cluster)
{
    struct dp_run_place place = {.epochs = cluster->training.epochs};
    struct dp_error unheard = {0};
    char prefix[DP_PATH_MAX + 1];
    double sum = 0, least = HUGE_VAL;
    uint32_t workers = 0;
    if (dp_folder_path(folder, prefix, &unheard, DP_FOLDER_STEPS) != DP_OK)
        return place;
    for (uint32_t w = 0; w < cluster->training.workers; w++) {
        struct dp_run_place one;
        if (!place_of(prefix, w, cluster, &one))
            continue;
        double epochs = one.whole + (double)one.group / (double)one.groups;
        if (epochs < least)
            place = one;
        least = fmin(least, epochs);
        sum += epochs;
        workers++;
    }
    if (workers > 0)
        place.share = sum / workers / place.epochs;
    keep_restored(folder, cluster, &place);
    return place;
}

void dp_run_place_text(const struct dp_run_place *place, const struct dp_cluster *cluster,
                       char text[DP_RUN_PLACE_BYTES])
{
    uint32_t before = cluster->training.first_epoch;
    if (!place->known)
        (void)snprintf(text, DP_RUN_PLACE_BYTES, "how far it came is not known");
    else if (place->whole == place->epochs)
        (void)snprintf(text, DP_RUN_PLACE_BYTES, "all %" PRIu32 " epochs are trained, the end is missing",
                       place->epochs);
    else
        (void)snprintf(text, DP_RUN_PLACE_BYTES,
                       "in epoch %" PRIu32 " of %" PRIu32 ", %.3g%% of the training done",
                       before + place->whole + 1, before + place->epochs, 100 * place->share);
}

void dp_run_resume_command(const struct dp_folder *folder, char *out, size_t size)
{
    char quoted[DP_PATH_QUOTED];
    (void)snprintf(out, size, "downpour run --dir %s --resume", dp_path_quote(folder->path, quoted));
}
