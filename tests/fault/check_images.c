/* check_images: takes crash images out of a recording and starts a real server on each.
 *     for each cut: model up to it -> image -> server -> pull all rows -> send again what was not acknowledged -> pull all rows
 * Wants     The server starts. Rows have every push that was acknowledged before the cut, none that was not sent, each
 *           once; what is sent again under its old id is counted once too. Some images are closed cleanly and opened again.
 * Exit      0: all did. 1: one did not; how to make that image again is printed. 2: it could not work. */
#define _GNU_SOURCE
#include "common/config/cluster.h"
#include "common/env/directory.h"
#include "tests/fault/disk_file.h"
#include "tests/fault/disk_model.h"
#include "tests/fault/ledger.h"
#include "tests/lib/process.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define READY_MS   30000u
#define CLEAN_EACH 8u /* images, of which one is closed cleanly and opened again */

struct check {
    const char *log, *conf, *server, *prefix;
    uint64_t seed, cuts, at;
    uint32_t part, parts;
    enum dp_disk_plant plant;
    int survival; /* -1: half of them random */
    bool keep;
    struct dp_cluster *cluster;
    uint64_t records, *cut;
    uint64_t sent[DP_LEDGER_CLIENTS],
        acked[DP_LEDGER_CLIENTS]; /* numbers up to the cut: one beyond the last */
    uint32_t done, recovered;
};

/* ---- which cuts */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

#define CLASSES (DP_RECORD_KINDS * DP_DISK_SORTS)

struct place {
    uint32_t kind_and_sort;
    uint64_t at;
};

static enum dp_status list_places(struct check *check, struct place **out, struct dp_error *err)
{
    struct dp_disk_model *model = NULL;
    struct dp_disk_step step;
    uint64_t room = 0;
    enum dp_status st = dp_disk_model_open(check->log, DP_DISK_SOUND, &model, err);
    while (st == DP_OK && (st = dp_disk_model_step(model, &step, err)) == DP_OK) {
        if (check->records == room) {
            room = room ? 2 * room : 4096;
            *out = realloc(*out, room * sizeof **out);
            DP_ASSERT(*out);
        }
        (*out)[check->records] =
            (struct place){step.record.kind * DP_DISK_SORTS + step.sort, check->records + 1};
        check->records++;
    }
    dp_disk_model_close(&model);
    return st == DP_NOT_FOUND ? DP_OK : st;
}

/* A place of the class that the draw says; all classes that occur are equally likely, however rare they are. */
static uint64_t draw_place(const struct check *check, const struct place *place, bool writes, uint64_t draw)
{
    uint64_t count[CLASSES] = {0}, present = 0;
    uint32_t class = 0;
    for (uint64_t i = 0; i < check->records; i++)
        if (!writes || place[i].kind_and_sort / DP_DISK_SORTS == DP_RECORD_WRITE)
            present += count[place[i].kind_and_sort]++ == 0;
    for (uint64_t nth = draw % present + 1; nth > 0; class ++)
        nth -= count[class] > 0;
    class --;
    uint64_t nth = (draw >> 16) % count[class], i = 0;
    while (place[i].kind_and_sort != class || nth-- > 0)
        i++;
    return place[i].at;
}

/* A third of the cuts anywhere, a third behind each sort of call as often, a third behind each sort of write: those may
 * be torn. */
static enum dp_status choose_cuts(struct check *check, struct dp_error *err)
{
    struct place *place = NULL;
    enum dp_status st = list_places(check, &place, err);
    check->cut = calloc(check->cuts, sizeof *check->cut);
    DP_ASSERT(check->cut);
    for (uint64_t i = 0; st == DP_OK && i < check->cuts; i++) {
        uint64_t draw = dp_disk_draw(check->seed, i);
        check->cut[i] = i % 3 == 0 ? 1 + draw % check->records : draw_place(check, place, i % 3 == 1, draw);
        if (check->at)
            check->cut[i] = check->at;
    }
    if (st == DP_OK)
        qsort(check->cut, check->cuts, sizeof *check->cut, by_size);
    free(place);
    return st;
}

/* ---- one image */

static enum dp_status start(struct check *check, struct dp_process **out, struct dp_error *err)
{
    const char *const argv[] = {check->server, "--cluster", check->conf, "--server", "0", "--new", NULL};
    struct dp_process_options options = {.argv = argv, .prefix = check->prefix};
    *out = dp_process_start(&options);
    if (dp_process_await(*out, "ready:", READY_MS))
        return DP_OK;
    const char *said = dp_process_err(*out), *last = said + strlen(said);
    while (last > said && !(last[-1] == '\n' && *last))
        last--;
    return dp_fail(err, DP_CORRUPT, "the server did not start: %s", last);
}

static enum dp_status close_cleanly(struct dp_process **server, struct dp_error *err)
{
    dp_process_signal(*server, SIGTERM);
    int code = dp_process_wait(*server, READY_MS);
    enum dp_status st = code == 0 ? DP_OK
                                  : dp_fail(err, DP_CORRUPT, "SIGTERM ended the server with %d: %s", code,
                                            dp_process_err(*server));
    dp_process_free(server);
    return st;
}

static enum dp_status check_rows(struct check *check, bool again, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t c = 0; st == DP_OK && c < DP_LEDGER_CLIENTS; c++)
        st = dp_ledger_settle(check->cluster, c, again ? check->acked[c] : check->sent[c], check->sent[c],
                              err);
    return st;
}

static enum dp_status check_image(struct check *check, struct dp_disk_model *model, uint64_t at,
                                  enum dp_disk_survival survival, struct dp_error *err)
{
    const char *store = check->cluster->server[0].store;
    struct dp_process *server = NULL;
    enum dp_status st = dp_directory_remove(store, false, 0, err);
    if (st == DP_OK)
        st = dp_disk_model_image(model, survival, dp_disk_draw(check->seed, UINT32_MAX + at), store, err);
    if (st == DP_OK && check->keep)
        return DP_OK;
    if (st == DP_OK)
        st = start(check, &server, err);
    check->recovered += st == DP_OK && strstr(dp_process_err(server), "recovered") != NULL;
    if (st == DP_OK)
        st = check_rows(check, true, err);
    if (st == DP_OK && check->done % CLEAN_EACH == 0) {
        st = close_cleanly(&server, err);
        if (st == DP_OK)
            st = start(check, &server, err);
        if (st == DP_OK)
            st = check_rows(check, false, err);
    }
    dp_process_free(&server);
    return st;
}

static void say_failed(const struct check *check, uint64_t at, enum dp_disk_survival survival,
                       const struct dp_error *err)
{
    printf("cut behind record %" PRIu64 " of %" PRIu64 ", surviving %s: %s\n"
           "    again: check_images --log %s --conf %s --server %s --prefix %s --seed %" PRIu64
           " --at %" PRIu64 " --survival %s --plant %s (--keep: makes the image and starts nothing)\n",
           at, check->records, dp_disk_survival_name(survival), err->text, check->log, check->conf,
           check->server, check->prefix, check->seed, at, dp_disk_survival_name(survival),
           dp_disk_plant_name(check->plant));
}

/* 0 or 1; 2: trouble. */
static int check_all(struct check *check, struct dp_error *err)
{
    struct dp_disk_model *model = NULL;
    uint64_t at = 0;
    int code = 0;
    enum dp_status st = dp_disk_model_open(check->log, check->plant, &model, err);
    for (uint64_t i = 0; st == DP_OK && code == 0 && i < check->cuts; i++) {
        struct dp_disk_step step;
        for (; st == DP_OK && at < check->cut[i]; at++) {
            st = dp_disk_model_step(model, &step, err);
            if (st == DP_OK && step.record.kind == DP_RECORD_SENT)
                check->sent[step.record.fd] = step.record.at + 1;
            if (st == DP_OK && step.record.kind == DP_RECORD_ACKED)
                check->acked[step.record.fd] = step.record.at + 1;
        }
        if (st != DP_OK || i % check->parts != check->part)
            continue;
        uint64_t draw = dp_disk_draw(check->seed, check->cuts + i) % 4;
        enum dp_disk_survival survival = draw < DP_DISK_RANDOM ? (enum dp_disk_survival)draw : DP_DISK_RANDOM;
        if (check->survival >= 0)
            survival = (enum dp_disk_survival)check->survival;
        if (check_image(check, model, at, survival, err) != DP_OK) {
            say_failed(check, at, survival, err);
            code = 1;
        }
        check->done++;
    }
    dp_disk_model_close(&model);
    return st == DP_OK ? code : 2;
}

/* ---- flags */

static int find_name(const char *text, int count, const char *(*name)(int))
{
    for (int i = 0; i < count; i++)
        if (strcmp(name(i), text) == 0)
            return i;
    return -1;
}

static const char *survival_name(int i)
{
    return dp_disk_survival_name((enum dp_disk_survival)i);
}

static const char *plant_name(int i)
{
    return dp_disk_plant_name((enum dp_disk_plant)i);
}

static enum dp_status read_flags(int argc, char **argv, struct check *check, struct dp_error *err)
{
    static const struct option flags[] = {{"log", required_argument, NULL, 'l'},
                                          {"conf", required_argument, NULL, 'c'},
                                          {"server", required_argument, NULL, 'b'},
                                          {"prefix", required_argument, NULL, 'o'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"cuts", required_argument, NULL, 'n'},
                                          {"at", required_argument, NULL, 'a'},
                                          {"part", required_argument, NULL, 'p'},
                                          {"parts", required_argument, NULL, 'm'},
                                          {"plant", required_argument, NULL, 'x'},
                                          {"survival", required_argument, NULL, 'v'},
                                          {"keep", no_argument, NULL, 'k'},
                                          {NULL, 0, NULL, 0}};
    int plant = 0;
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        uint64_t n = optarg ? strtoull(optarg, NULL, 10) : 0;
        switch (c) {
        case 'l':
            check->log = optarg;
            break;
        case 'c':
            check->conf = optarg;
            break;
        case 'b':
            check->server = optarg;
            break;
        case 'o':
            check->prefix = optarg;
            break;
        case 's':
            check->seed = n;
            break;
        case 'n':
            check->cuts = n;
            break;
        case 'a':
            check->at = n;
            break;
        case 'p':
            check->part = (uint32_t)n;
            break;
        case 'm':
            check->parts = (uint32_t)n;
            break;
        case 'x':
            plant = find_name(optarg, DP_DISK_PLANTS, plant_name);
            break;
        case 'v':
            check->survival = find_name(optarg, DP_DISK_SURVIVALS, survival_name);
            break;
        case 'k':
            check->keep = true;
            break;
        default:
            return dp_fail(err, DP_ARGUMENT, "an unknown flag");
        }
    }
    if (!check->log || !check->conf || !check->server || !check->prefix || plant < 0 || check->parts == 0)
        return dp_fail(err, DP_ARGUMENT, "--log, --conf, --server and --prefix are needed");
    check->plant = (enum dp_disk_plant)plant;
    return dp_cluster_read(check->conf, &check->cluster, err);
}

int main(int argc, char **argv)
{
    struct check check = {.cuts = 1, .parts = 1, .survival = -1, .seed = 1};
    struct dp_error err = {0};
    int code = 2;
    enum dp_status st = read_flags(argc, argv, &check, &err);
    if (st == DP_OK)
        st = choose_cuts(&check, &err);
    if (st == DP_OK)
        code = check_all(&check, &err);
    if (code == 2)
        printf("check_images: %s\n", err.text);
    printf("%" PRIu32 " images, %" PRIu32 " recovered\n", check.done, check.recovered);
    free(check.cut);
    dp_cluster_free(&check.cluster);
    return code;
}
