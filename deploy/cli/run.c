/* run: a whole training on this machine.
 *     flags -> directory -> cluster file -> servers -> (they answer) -> workers -> (they end) ->
 *     servers stopped -> result
 * Why   The cluster file is written before anything is started: whatever happens after, it says what the
 *       store is. That of an earlier run on the same store is kept until a worker has told its first
 *       progress: by then the servers have accepted its tables. If none ever does, it comes back. */
#include "deploy/cli/commands.h"
#include "deploy/cli/copy.h"
#include "deploy/cli/epochs.h"
#include "deploy/cli/folder.h"
#include "deploy/cli/local.h"
#include "deploy/cli/options.h"
#include "deploy/cli/outcome.h"
#include "deploy/cli/ports.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/run_flags.h"
#include "deploy/cli/run_second.h"
#include "deploy/cli/run_state.h"
#include "deploy/cli/servers.h"
#include "deploy/cli/spool.h"

#include "common/base/parse.h"
#include "common/env/whole.h"
#include "common/model/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define WORKER_STOP_MS 10000u
#define SERVER_STOP_MS 120000u
#define LOOK_MS        500u
#define RESTARTS       20u
#define RESTARTS_MAX   10000u

struct run {
    const char *values[DP_RUN_FLAGS];
    struct dp_cluster *cluster;
    struct dp_folder folder;
    struct dp_local *local;
    struct dp_client *client;
    struct dp_cli_line line;
    struct dp_cli_epochs epochs;
    FILE *tables;           /* where results are shown: standard output, unless the report goes there */
    struct dp_whole report; /* --report that is no file */
    uint32_t restarts;
    struct dp_run_state state;
    struct dp_cluster *earlier; /* the run there, where there is one */
    bool continues;             /* on an earlier run's store */
    bool resumes;               /* it is the earlier run */
    bool accepted;              /* some worker has trained: the earlier run's place is this one's */
    bool trained;               /* some worker has said so */
};

static const char *flag(const struct run *run, const char *name)
{
    return dp_options_value(&dp_run_command, run->values, name);
}

static enum dp_status number(const struct run *run, const char *name, uint64_t min, uint64_t max,
                             uint32_t *out, struct dp_error *err)
{
    uint64_t value;
    if (!flag(run, name))
        return DP_OK;
    enum dp_status st = dp_parse_u64(flag(run, name), min, max, name, &value, err);
    if (st == DP_OK)
        *out = (uint32_t)value;
    return st;
}

/* The base, or one server with all defaults. */
static enum dp_status begin_cluster(struct run *run, struct dp_error *err)
{
    if (flag(run, "--cluster"))
        return dp_cluster_read(flag(run, "--cluster"), &run->cluster, err);
    run->cluster = calloc(1, sizeof *run->cluster);
    if (!run->cluster)
        return dp_fail(err, DP_NOMEM, "no memory");
    dp_cluster_defaults(run->cluster);
    (void)snprintf(run->cluster->name, sizeof run->cluster->name, "local");
    return DP_OK;
}

static enum dp_status set_servers(struct run *run, struct dp_error *err)
{
    struct dp_cluster *c = run->cluster;
    uint32_t count = c->server_count ? c->server_count : 1, shards = 0;
    enum dp_status st = number(run, "--servers", 1, DP_SERVERS_MAX, &count, err);
    if (st == DP_OK)
        st = number(run, "--shards", 1, DP_SHARDS_MAX, &shards, err);
    if (st != DP_OK)
        return st;
    struct dp_cluster_server *server = calloc(count, sizeof *server);
    if (!server)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " servers", count);
    for (uint32_t i = 0; i < count; i++)
        server[i].shards = shards ? shards : i < c->server_count ? c->server[i].shards : 1;
    free(c->server);
    c->server = server;
    c->server_count = count;
    return DP_OK;
}

/* A file of the data: absolute, as servers and a later predict may stand elsewhere, and readable. */
static enum dp_status settle_file(const char *name, char *path, struct dp_error *err)
{
    char absolute[DP_PATH_MAX + 1];
    if (!path[0] || dp_spool_is_stream(path))
        return DP_OK;
    if (access(path, R_OK) != 0)
        return dp_fail(err, DP_IO, "%s: cannot read '%.300s': %s", name, path, strerror(errno));
    enum dp_status st = dp_path_absolute(path, absolute, err);
    if (st == DP_OK)
        memcpy(path, absolute, sizeof absolute);
    return st;
}

static enum dp_status settle_files(struct run *run, struct dp_error *err)
{
    struct dp_cluster_data *data = &run->cluster->data;
    if (!run->cluster->model[0])
        return dp_fail(err, DP_ARGUMENT, "--model MODEL is needed; 'downpour run --help' lists all flags");
    if (!data->train[0])
        return dp_fail(err, DP_ARGUMENT, "--train FILE is needed; 'downpour run --help' lists all flags");
    enum dp_status st = settle_file("--train", data->train, err);
    if (st == DP_OK)
        st = settle_file("--test", data->test, err);
    if (st == DP_OK)
        st = settle_file("--train-labels", data->train_labels, err);
    if (st == DP_OK)
        st = settle_file("--test-labels", data->test_labels, err);
    if (st == DP_OK)
        st = settle_file("--test-negatives", data->test_negatives, err);
    if (st == DP_OK)
        st = settle_file("--validation", data->validation, err);
    if (st == DP_OK)
        st = settle_file("--validation-labels", data->validation_labels, err);
    if (st == DP_OK)
        st = settle_file("--validation-negatives", data->validation_negatives, err);
    return st;
}

/* One of its own for each new store, so that a worker left over from another run is refused by these servers.
 */
static enum dp_status new_id(struct dp_cluster *cluster, struct dp_error *err)
{
    cluster->id = 0;
    if (getrandom(&cluster->id, sizeof cluster->id, 0) != (ssize_t)sizeof cluster->id)
        return dp_fail(err, DP_IO, "cannot get a random number: %s", strerror(errno));
    cluster->id |= 1; /* never 0 */
    return DP_OK;
}

static enum dp_status check_ways(const struct run *run, struct dp_error *err)
{
    static const char *const ways[] = {"--resume", "--continue", "--fresh"};
    const char *given = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (flag(run, ways[i]) && given)
            return dp_fail(err, DP_ARGUMENT, "%s and %s: give one of them", given, ways[i]);
        given = flag(run, ways[i]) ? ways[i] : given;
    }
    return DP_OK;
}

static const char *dir_of(const struct run *run)
{
    return flag(run, "--dir") ? flag(run, "--dir") : "downpour-run";
}

/* The run that is there, and what flags say beside it. */
static enum dp_status begin_resumed(struct run *run, struct dp_error *err)
{
    if (flag(run, "--cluster"))
        return dp_fail(err, DP_ARGUMENT,
                       "--resume takes the cluster file of the run in DIR: leave --cluster out");
    if (dir_of(run)[0] && access(dir_of(run), F_OK) != 0)
        return dp_fail(err, DP_NOT_FOUND, "there is no run to resume in '%.300s': %s", dir_of(run),
                       strerror(errno));
    enum dp_status st = dp_folder_open(dir_of(run), &run->folder, err);
    if (st == DP_OK)
        st = dp_second_resumable(&run->folder, &run->earlier, err);
    if (st == DP_OK)
        st = dp_cluster_read(run->folder.conf, &run->cluster, err);
    run->resumes = true;
    return st;
}

static enum dp_status make_cluster(struct run *run, struct dp_error *err)
{
    uint32_t seconds = 0;
    enum dp_status st = check_ways(run, err);
    if (st == DP_OK)
        st = flag(run, "--resume") ? begin_resumed(run, err) : begin_cluster(run, err);
    if (st == DP_OK)
        st = dp_options_apply(&dp_run_command, run->values, run->cluster, err);
    if (st == DP_OK)
        st = number(run, "--timeout", 1, 600, &seconds, err);
    if (st == DP_OK && seconds)
        run->cluster->training.timeout_ms = 1000 * seconds;
    if (st == DP_OK)
        st = number(run, "--restarts", 0, RESTARTS_MAX, &run->restarts, err);
    if (st == DP_OK)
        st = set_servers(run, err);
    if (st == DP_OK)
        st = settle_files(run, err);
    if (st == DP_OK) {
        run->state.known = true;
        run->state.train = dp_file_print(run->cluster->data.train);
        run->state.train_labels = dp_file_print(run->cluster->data.train_labels);
    }
    if (st == DP_OK && !run->resumes)
        st = new_id(run->cluster, err);
    /* Before anything is made, and before --fresh removes anything. */
    const struct dp_options_given given = {&dp_run_command, run->values, !flag(run, "--cluster")};
    const struct dp_setting_names names = dp_options_names(&given);
    return st == DP_OK ? dp_cluster_check_settings(run->cluster, &names, err) : st;
}

/* The report would take the place of what it is made of. */
static enum dp_status check_report(const struct run *run, const char *to, struct dp_error *err)
{
    const struct dp_cluster_data *data = &run->cluster->data;
    const char *const files[] = {data->train,
                                 data->train_labels,
                                 data->test,
                                 data->test_labels,
                                 data->test_negatives,
                                 data->validation,
                                 data->validation_labels,
                                 data->validation_negatives};
    char absolute[DP_PATH_MAX + 1] = "";
    struct dp_error unheard = {0}; /* opening it says more of a name that is none */
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i][0] && dp_path_same(to, files[i]))
            return dp_fail(err, DP_ARGUMENT, "--report: '%s' is a file of the data itself: name another", to);
    const char *base = flag(run, "--cluster");
    if (dp_path_absolute(to, absolute, &unheard) != DP_OK)
        absolute[0] = '\0';
    if (strcmp(absolute, run->folder.conf) == 0 || dp_path_same(to, run->folder.conf) ||
        (base && dp_path_same(to, base)))
        return dp_fail(err, DP_ARGUMENT, "--report: '%s' is a cluster file: name another", to);
    return DP_OK;
}

/* That it can be written is seen now, and not after an hour of training. What is no file (a pipe, a device) gets a copy of the one
 * in the directory. */
static enum dp_status set_report(struct run *run, struct dp_error *err)
{
    const char *to = flag(run, "--report");
    char *report = run->cluster->training.report;
    if (!to && run->resumes && report[0])
        return DP_OK;
    if (!to)
        return dp_folder_path(&run->folder, report, err, "report.json");
    if (strcmp(to, "-") == 0)
        to = "/dev/stdout";
    if (strcmp(to, "/dev/stdout") == 0) /* the report alone goes there */
        run->tables = stderr;
    enum dp_status st = check_report(run, to, err);
    if (st != DP_OK)
        return st;
    st = dp_whole_open(to, &run->report, err);
    if (st == DP_OK && run->report.direct)
        return dp_folder_path(&run->folder, report, err, "report.json");
    dp_whole_drop(&run->report);
    return st == DP_OK ? dp_path_absolute(to, report, err) : dp_wrap(err, st, "--report");
}

/* Absolute, as report and store are; where none is named, one beside the store. */
static enum dp_status set_cache(struct run *run, struct dp_error *err)
{
    char absolute[DP_PATH_MAX + 1], *cache = run->cluster->data.cache;
    if (!cache[0])
        return dp_folder_path(&run->folder, cache, err, "cache");
    enum dp_status st = dp_path_absolute(cache, absolute, err);
    if (st == DP_OK)
        memcpy(cache, absolute, sizeof absolute);
    return st;
}

static enum dp_status plan_spools(struct run *run, struct dp_spools *spools, struct dp_error *err)
{
    struct dp_cluster_data *data = &run->cluster->data;
    const struct {
        const char *flag;
        char *path;
    } files[] = {{"--train", data->train},
                 {"--test", data->test},
                 {"--train-labels", data->train_labels},
                 {"--test-labels", data->test_labels},
                 {"--test-negatives", data->test_negatives},
                 {"--validation", data->validation},
                 {"--validation-labels", data->validation_labels},
                 {"--validation-negatives", data->validation_negatives}};
    enum dp_status st = DP_OK;
    uint32_t tag = 2166136261u; /* a cache may be that of several directories; FNV-1a */
    for (const char *at = run->folder.path; *at; at++)
        tag = (tag ^ (unsigned char)*at) * 16777619u;
    for (size_t i = 0; st == DP_OK && i < sizeof files / sizeof files[0]; i++)
        st = dp_spool_plan(spools, files[i].flag, files[i].path, data->cache, tag, err);
    return st;
}

static enum dp_status set_places(struct run *run, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    run->cluster->relative_to = DP_CLUSTER_FILE; /* the directory can be moved */
    for (uint32_t i = 0; st == DP_OK && i < run->cluster->server_count; i++) {
        struct dp_cluster_server *server = &run->cluster->server[i];
        (void)snprintf(server->host, sizeof server->host, "127.0.0.1");
        st = dp_folder_path(&run->folder, server->store, err, "store/server-%" PRIu32, i);
    }
    return st;
}

/* What labels meant to the weights that are trained on, where it is known: the workers see that they mean the same, and write their
 * own over it. */
static enum dp_status copy_columns(const struct run *run, struct dp_error *err)
{
    const char *to = run->cluster->data.columns, *from = run->earlier->data.columns;
    struct dp_whole file = {0};
    if (!from[0] || access(from, R_OK) != 0 || dp_path_same(from, to))
        return DP_OK;
    enum dp_status st = dp_whole_open(to, &file, err);
    if (st == DP_OK)
        st = dp_copy_file(from, false, file.stream, to, err);
    if (st == DP_OK)
        st = dp_whole_commit(&file, err);
    dp_whole_drop(&file);
    return st;
}

/* What is named by the number of the run, and the number itself. */
static enum dp_status set_number(struct run *run, uint32_t number, struct dp_error *err)
{
    run->cluster->training.run = number;
    enum dp_status st = dp_folder_columns(&run->folder, number, run->cluster->data.columns, err);
    if (st == DP_OK && run->continues)
        st = copy_columns(run, err);
    if (st == DP_OK)
        st = dp_folder_steps(&run->folder, number, run->cluster->training.steps, err);
    if (st == DP_OK)
        st = dp_folder_names(&run->folder, number, run->cluster->data.names, err);
    if (st == DP_OK)
        st = dp_run_state_write(&run->folder, number, &run->state, err);
    return st == DP_OK ? dp_folder_set_run(&run->folder, number, err) : st;
}

/* Its ports may be another's by now. */
static enum dp_status settle_ports(struct run *run, struct dp_error *err)
{
    uint32_t port = 0, before = run->cluster->server[0].port;
    enum dp_status st = number(run, "--port", 1, 65535, &port, err);
    if (st == DP_OK && run->resumes && !port && dp_ports_choose(run->cluster, before, NULL) == DP_OK)
        return DP_OK;
    return st == DP_OK ? dp_ports_choose(run->cluster, port, err) : st;
}

/* What is there already gives way, is trained on, or stands in the way. */
static enum dp_status settle_earlier(struct run *run, struct dp_error *err)
{
    const struct dp_second second = {.folder = &run->folder,
                                     .command = &dp_run_command,
                                     .now = &run->state,
                                     .continues = flag(run, "--continue") != NULL};
    if (run->resumes)
        return dp_second_same(&second, run->earlier, run->cluster, err);
    if (dp_folder_has_foreign_conf(&run->folder))
        return dp_fail(err, DP_EXISTS,
                       "'%.300s' is not of a run of this command, which would write its own over it: to "
                       "train by it give "
                       "--cluster, and another --dir",
                       run->folder.conf);
    bool there = dp_folder_has_run(&run->folder);
    if (flag(run, "--fresh")) {
        enum dp_status st =
            there ? dp_folder_set_aside(&run->folder, err) : dp_folder_clear(&run->folder, true, err);
        return st == DP_OK ? dp_folder_clear_logs(&run->folder, err) : st;
    }
    if (!there)
        return !second.continues
                   ? DP_OK
                   : dp_fail(err, DP_NOT_FOUND,
                             "--continue: there is no earlier run in '%.300s': leave it out, or name the "
                             "run's --dir",
                             run->folder.path);
    enum dp_status st = dp_cluster_read(run->folder.conf, &run->earlier, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "the earlier run in '%.200s' cannot be gone on with (--fresh removes it)",
                       run->folder.path);
    st = dp_second_join(&second, run->earlier, run->cluster, err);
    run->continues = st == DP_OK;
    return st;
}

static enum dp_status settle_folder(struct run *run, struct dp_error *err)
{
    struct dp_spools spools = {.count = 0};
    enum dp_status st = run->resumes ? DP_OK : dp_folder_open(dir_of(run), &run->folder, err);
    if (st == DP_OK)
        st = set_report(run, err);
    if (st == DP_OK)
        st = set_cache(run, err);
    if (st == DP_OK)
        st = plan_spools(run, &spools, err);
    if (st == DP_OK)
        st = set_places(run, err);
    if (st == DP_OK)
        st = settle_ports(run, err);
    /* Behind all that can refuse the run. */
    if (st == DP_OK)
        st = settle_earlier(run, err);
    if (st == DP_OK)
        st = dp_spool_fill(&spools, err);
    if (st == DP_OK && spools.count > 0) {
        run->state.train = dp_file_print(run->cluster->data.train);
        run->state.train_labels = dp_file_print(run->cluster->data.train_labels);
    }
    if (st == DP_OK)
        st = set_number(run, run->cluster->training.run, err);
    if (st == DP_OK && run->continues)
        st = dp_folder_keep(&run->folder, err);
    if (st == DP_OK)
        st = dp_cluster_write(run->cluster, run->folder.conf, err);
    dp_cluster_free(&run->cluster);
    if (st == DP_OK) /* as the others will read it, its id filled in */
        st = dp_cluster_read(run->folder.conf, &run->cluster, err);
    return st;
}

/* Whether the servers refuse this number as too old (*next: the first that they accept), or have a push of it. */
static enum dp_status look_up_run(struct run *run, uint32_t number, uint32_t *next, struct dp_error *err)
{
    uint64_t bits = 0;
    enum dp_status st = dp_client_pushed(run->client, dp_stream_of_run(number, 0), 0, 1, &bits,
                                         run->cluster->training.timeout_ms, err);
    uint32_t last = st == DP_TOO_OLD ? dp_stream_run(dp_client_too_old(run->client)) : number;
    *next = number;
    if (st != DP_TOO_OLD && !(st == DP_OK && (bits & 1)))
        return st;
    if (last < number || last >= DP_RUN_MAX)
        return st == DP_OK ? dp_fail(err, DP_FULL, "no run number above %" PRIu32 " is left", number) : st;
    *err = (struct dp_error){0};
    *next = last + 1;
    return DP_OK;
}

/* Any peer can push under run numbers that are still to come: this run takes the next one that is free. */
static enum dp_status choose_run(struct run *run, struct dp_error *err)
{
    uint32_t *number = &run->cluster->training.run, before = *number, next = 0;
    if (run->resumes) /* its own pushes are there */
        return DP_OK;
    enum dp_status st = look_up_run(run, *number, &next, err);
    for (; st == DP_OK && next != *number; st = look_up_run(run, *number, &next, err))
        *number = next;
    if (st != DP_OK || *number == before)
        return st;
    fprintf(stderr,
            "downpour: run %" PRIu32 " is used or too old on these servers: this is run %" PRIu32 "\n",
            before, *number);
    st = set_number(run, *number, err);
    return st == DP_OK ? dp_cluster_write(run->cluster, run->folder.conf, err) : st;
}

/* For the logs: the run's number. */
static void set_title(struct run *run)
{
    char title[32];
    (void)snprintf(title, sizeof title, "run %" PRIu32, run->cluster->training.run);
    dp_local_title(run->local, title);
}

static enum dp_status start_workers(struct run *run, struct dp_error *err)
{
    set_title(run); /* the number may be another one than before */
    char program[DP_PATH_MAX + 1], path[DP_PATH_MAX + 1], index[16], name[32];
    enum dp_status st = dp_program_path("downpour-worker", program, err);
    for (uint32_t i = 0; st == DP_OK && i < run->cluster->training.workers; i++) {
        (void)snprintf(index, sizeof index, "%" PRIu32, i);
        (void)snprintf(name, sizeof name, "worker %" PRIu32, i);
        const char *const argv[] = {program,    "--cluster", run->folder.conf, "--worker", index,
                                    "--resume", NULL};
        st = dp_folder_path(&run->folder, path, err, "log/worker-%" PRIu32 ".log", i);
        if (st == DP_OK)
            st = dp_local_start(run->local, DP_LOCAL_WORKER, name, argv, path, -1, err);
    }
    return st;
}

/* What happened to the processes. */
static void tell_news(struct run *run)
{
    char text[256];
    while (dp_local_news(run->local, text, sizeof text)) {
        dp_cli_line_end(&run->line);
        fprintf(stderr, "downpour: %s\n", text);
    }
}

static void accept(struct run *run)
{
    struct dp_error err = {0};
    if (run->accepted)
        return;
    run->accepted = true;
    if (dp_folder_accept(&run->folder, run->cluster->training.run, &err) == DP_OK)
        return;
    dp_cli_line_end(&run->line);
    fprintf(stderr, "downpour: %s\n", err.text);
}

static void watch(struct run *run)
{
    dp_cli_epochs_look(&run->epochs, &run->line);
    if (!run->client)
        return;
    struct dp_cli_progress seen = dp_cli_progress_watch(run->client, run->cluster->training.run, &run->line);
    run->trained = run->trained || seen.examples > 0;
    /* Behind its reading: until then it may refuse its data, and the earlier run is wanted back. */
    if (run->trained || seen.evaluating + seen.waiting + seen.done > 0)
        accept(run);
}

/* DP_STOPPING: a signal, or a process ended as it should not have. */
static enum dp_status train(struct run *run, struct dp_error *err)
{
    set_title(run);
    enum dp_status st =
        dp_servers_start(run->local, &run->folder, run->cluster, run->folder.conf, "server", err);
    if (st == DP_OK)
        st = dp_servers_await(run->local, run->cluster, run->cluster->training.timeout_ms, &run->client, err);
    if (st == DP_OK)
        st = choose_run(run, err);
    if (st == DP_OK)
        st = start_workers(run, err);
    while (st == DP_OK && dp_local_running(run->local, DP_LOCAL_WORKER) > 0) {
        dp_local_wait(run->local, LOOK_MS);
        tell_news(run);
        if (dp_local_signal(run->local) || dp_local_failed(run->local))
            return dp_fail(err, DP_STOPPING, "stopped before the end of the training");
        watch(run);
    }
    return st;
}

static enum dp_status stop_all(struct run *run)
{
    /* Without their server workers have nothing to wait for. */
    uint32_t grace_ms = dp_local_server_failed(run->local) ? 0 : WORKER_STOP_MS;
    enum dp_status workers = dp_local_stop(run->local, DP_LOCAL_WORKER, grace_ms);
    dp_client_close(&run->client);
    enum dp_status servers = dp_local_stop(run->local, DP_LOCAL_SERVER, SERVER_STOP_MS);
    return servers == DP_OK ? workers : servers;
}

static const char *place_of(const struct run *run, char text[DP_RUN_PLACE_BYTES])
{
    const struct dp_run_place place = dp_run_place(&run->folder, run->cluster);
    dp_run_place_text(&place, run->cluster, text);
    return text;
}

static void tell_start(const struct run *run)
{
    const struct dp_cluster *c = run->cluster;
    char place[DP_RUN_PLACE_BYTES];
    uint32_t shards = dp_cluster_shards(c), workers = c->training.workers;
    fprintf(stderr, "Training %s: %" PRIu32 " server%s, %" PRIu32 " shard%s, %" PRIu32 " worker%s, in %s\n",
            c->model, c->server_count, c->server_count == 1 ? "" : "s", shards, shards == 1 ? "" : "s",
            workers, workers == 1 ? "" : "s", run->folder.path);
    if (c->training.epochs == 0 && !run->resumes)
        fprintf(stderr,
                "As many epochs as suit the model and the size of the training set (--epochs N: N).\n");
    if (run->resumes)
        fprintf(stderr, "Resuming run %" PRIu32 " there, %s.\n", c->training.run, place_of(run, place));
    else if (run->continues)
        fprintf(stderr,
                "Going on from the store of the earlier run there; this is run %" PRIu32
                ", its first epoch is epoch %" PRIu32 " (--fresh starts anew).\n",
                c->training.run, c->training.first_epoch + 1);
}

static enum dp_status tell_result(struct run *run, struct dp_error *err)
{
    FILE *to = run->tables;
    enum dp_status st = dp_outcome_print(run->cluster->training.report, true, to, err);
    fprintf(to, "Report:    %s\n", run->cluster->training.report);
    fprintf(to, "Store:     %s/store\n", run->folder.path);
    fprintf(to, "Logs:      %s/log\n", run->folder.path);
    dp_outcome_uses(run->cluster->model, run->folder.path, to);
    if (fflush(stdout) != 0 && st == DP_OK)
        st = dp_fail(err, DP_IO, "cannot write to standard output: %s", strerror(errno));
    if (run->report.path && st == DP_OK)
        st = dp_copy_file(run->cluster->training.report, false, run->report.stream, flag(run, "--report"),
                          err);
    return run->report.path && st == DP_OK ? dp_whole_commit(&run->report, err) : st;
}

/* What is left, and how to go on with it. back: the run that --fresh had set aside is there again. */
static void after_failure(struct run *run, bool failed, bool back)
{
    struct dp_error unheard = {0};
    char place[DP_RUN_PLACE_BYTES], resume[4 * DP_PATH_MAX + 64];
    bool trained = run->trained || dp_run_place(&run->folder, run->cluster).known;
    dp_run_resume_command(&run->folder, resume, sizeof resume);
    if (back)
        fprintf(stderr, "downpour: the earlier run in %s, whose place this one was to take, is as it was\n",
                run->folder.path);
    else if (run->continues && !run->accepted)
        fprintf(stderr, "downpour: this run went on from an earlier one's store, which is as it was; --fresh "
                        "would remove "
                        "that and start anew\n");
    else if (failed && run->cluster->durability == DP_CLUSTER_NONE && dp_local_server_failed(run->local))
        fprintf(stderr, "downpour: without a journal (--durability none) what a killed server had trained is "
                        "lost: --fresh would remove "
                        "that and start anew\n");
    else if (run->resumes || run->continues || trained)
        fprintf(stderr, "downpour: run %" PRIu32 " is not finished: %s. To finish it: %s%s\n",
                run->cluster->training.run, place_of(run, place), resume,
                failed && !run->trained ? " (--fresh would remove that, and start anew)" : "");
    /* A store that nobody trained on (a wrong model's name, a missing column) is taken away again: the next try would be told
     * that it does not fit. */
    else if (dp_folder_clear(&run->folder, false, &unheard) != DP_OK)
        fprintf(stderr, "downpour: %s\n", unheard.text);
}

/* That all of it is trained is to be known as long as the weights are there. */
static enum dp_status set_finished(struct run *run, struct dp_error *err)
{
    const struct dp_cluster_training *t = &run->cluster->training;
    uint32_t reported = dp_run_report_epochs(t->report, t->run);
    run->state.finished = true;
    run->state.epochs = reported ? reported : dp_run_place(&run->folder, run->cluster).whole;
    return dp_run_state_write(&run->folder, t->run, &run->state, err);
}

static int finish(struct run *run, enum dp_status st, struct dp_error *err)
{
    struct dp_error unheard = {0};
    int code = st == DP_OK ? 0 : 2;
    dp_cli_line_end(&run->line);
    if (run->local)
        tell_news(run);
    bool failed = run->local && dp_local_failed(run->local);
    if (run->local && !failed && dp_local_signal(run->local)) {
        code = 128 + dp_local_signal(run->local);
        fprintf(stderr, "downpour: stopping, as signal %d asks\n", dp_local_signal(run->local));
    } else if (failed) {
        dp_local_explain(run->local, stderr);
        code = 2;
    } else if (st != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
    }
    if (run->local && !dp_local_server_failed(run->local)) {
        run->line.next_ms = 0; /* the last one is due, however soon it comes */
        if (failed && !run->trained)
            run->line.file = NULL; /* but that workers were starting is no news behind why they did not */
        watch(run);
    }
    dp_cli_line_end(&run->line);
    if (run->local && stop_all(run) != DP_OK && code == 0)
        code = 2;
    dp_cli_epochs_look(&run->epochs, &run->line); /* what a worker that was asked to stop still had to tell */
    if (code == 0)
        accept(run);
    bool back = false;
    if (!run->accepted && run->folder.lock >= 0 && dp_folder_restore(&run->folder, &back, &unheard) != DP_OK)
        fprintf(stderr, "downpour: %s\n", unheard.text);
    if (code != 0 && run->local)
        after_failure(run, failed, back);
    if (code == 0 && (set_finished(run, err) != DP_OK || tell_result(run, err) != DP_OK)) {
        fprintf(stderr, "downpour: %s\n", err->text);
        code = 2;
    }
    dp_whole_drop(&run->report);
    dp_local_close(&run->local);
    dp_folder_close(&run->folder);
    dp_cluster_free(&run->cluster);
    dp_cluster_free(&run->earlier);
    return code;
}

int dp_command_run(int argc, char *const *argv)
{
    struct run run = {.folder.lock = -1, .restarts = RESTARTS};
    struct dp_error err = {0};
    bool help;
    run.tables = stdout;
    dp_cli_line_init(&run.line, stderr);
    enum dp_status st = dp_options_parse(&dp_run_command, argc, argv, run.values, &help, &err);
    if (st == DP_OK && help)
        return dp_run_show_help(argc, argv);
    if (st == DP_OK)
        st = make_cluster(&run, &err);
    if (st == DP_OK)
        st = settle_folder(&run, &err);
    if (st == DP_OK)
        st = dp_local_open(&run.local, &err);
    if (st == DP_OK) {
        dp_local_restart_dead(run.local, run.restarts);
        dp_cli_epochs_init(&run.epochs, run.cluster->training.report, run.resumes, run.tables);
        tell_start(&run);
        st = train(&run, &err);
    }
    return finish(&run, st, &err);
}
