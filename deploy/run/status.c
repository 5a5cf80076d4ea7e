/* status: how a running cluster stands, once or again and again; with --all what each shard says of itself.
 *     ask all at once (queries.h) -> view (status_view.h) -> text or JSON -> (--watch: wait) -> again */
#include "deploy/cli/options.h"
#include "deploy/cli/progress.h"
#include "deploy/run/outcome.h"
#include "deploy/run/queries.h"
#include "deploy/run/run_commands.h"
#include "deploy/run/run_state.h"
#include "deploy/run/screen.h"
#include "deploy/run/servers.h"
#include "deploy/run/status_view.h"

#include "common/base/deadline.h"
#include "common/base/parse.h"
#include "common/config/cluster_client.h"
#include "common/wire/counters.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DOWN_CODE 1 /* something does not serve */

static const struct dp_option options[] = {
    {"--cluster", "FILE", NULL, "cluster file that the servers were started with"},
    {"--dir", "DIR", NULL, "directory of a run ('downpour run --dir DIR'), instead of --cluster"},
    {"--timeout", "SECONDS", NULL,
     "how long to wait for an answer before a server counts as down, 1 .. 600; all are asked at once; "
     "default 2"},
    {"--watch", "[SECONDS]", NULL,
     "repeat every SECONDS (1 .. 3600; default 2) until Ctrl-C; rates and pushes are then those of the "
     "last interval, otherwise of the time since each server started"},
    {"--json", NULL, NULL, "print one JSON object on one line"},
    {"--all", NULL, NULL, "also show the tables and counters of each shard, and what each counter counts"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "status",
    .usage = "--cluster FILE | --dir DIR [FLAGS]",
    .summary =
        "Shows the state of a running cluster. For each server: its state, rows pulled and pushed per "
        "second, staleness in pushes,\njournal bytes that a restart after a crash would replay, bytes "
        "of rows on disk, free disk space. For each worker: its\nstate and progress. Of all pushes: how "
        "stale they were, how far ahead of the slowest worker, which share of their rows\nhad changed since "
        "their "
        "pull (median and 99th percentile; with --json the histograms). With --dir, when "
        "nothing is\nrunning: whether the run is finished.\nExit code: 0 if all servers serve; 1 if one "
        "does not (stopped, as after a finished run, down,\nrecovering, waiting for disk space); 2 if the "
        "cluster could not be asked.",
    .options = options,
    .count = OPTIONS,
};

static const struct dp_option top_options[] = {
    {"--cluster", "FILE", NULL, "cluster file that the servers were started with"},
    {"--dir", "DIR", NULL, "directory of a run ('downpour run --dir DIR'), instead of --cluster"},
    {"--every", "SECONDS", NULL, "pause between two looks, 1 .. 3600; default 2"},
};

static const struct dp_command top_command = {
    .name = "top",
    .usage = "--cluster FILE | --dir DIR [FLAGS]",
    .summary =
        "Shows the state of a running cluster on the full screen, as 'downpour status --watch' has it, until "
        "q "
        "or Ctrl-C. Rates\nand pushes are those of the last pause. Where standard output is no terminal it "
        "prints plain lines.\nExit code: that of status.",
    .options = top_options,
    .count = sizeof top_options / sizeof top_options[0],
};

struct status_asked {
    const char *file, *dir; /* dir: NULL unless given */
    struct dp_cluster *cluster;
    uint32_t timeout_ms, watch_ms; /* watch 0: once */
    bool json, all;
    bool screen; /* top, on a terminal */
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

static void print_report(const struct dp_status_report *report, const char *endpoint)
{
    char rows[32], bytes[32];
    printf("\nshard %" PRIu32 " of %" PRIu32 " at %s\n", report->shard, report->shards, endpoint);
    if (report->tables)
        printf("  %-24s %8s %10s %14s %18s\n", "table", "width", "optimizer", "rows", "bytes");
    for (uint32_t i = 0; i < report->tables; i++) {
        const struct dp_table_status *t = &report->table[i];
        const char *optimizer = dp_cluster_optimizer_name(&t->spec.optimizer);
        printf("  %-24s %8" PRIu32 " %10s %14s %18s\n", t->spec.name, t->spec.dim,
               optimizer ? optimizer : "?", dp_cli_number((double)t->rows, rows, sizeof rows),
               dp_cli_number((double)t->bytes, bytes, sizeof bytes));
    }
    for (uint32_t i = 0; i < report->counters; i++) {
        const struct dp_counter_text *text = dp_counter_text(report->counter[i].name);
        printf("  %-28s %20s  %-5s  %s\n", report->counter[i].name,
               dp_cli_number((double)report->counter[i].value, rows, sizeof rows),
               text ? dp_counter_kind_name(text->kind) : "", text ? text->help : "");
    }
}

static void print_all(const struct dp_cluster *cluster, const struct dp_queries *asks)
{
    for (uint32_t i = 0; i < asks->shards; i++) {
        char endpoint[DP_HOST_MAX + 32];
        dp_cluster_shard_endpoint(cluster, i, endpoint, sizeof endpoint);
        if (asks->shard[i].state == DP_ASK_ANSWERED)
            print_report(&asks->shard[i].report, endpoint);
    }
}

/* A server of another history is no part of this cluster. */
static enum dp_status check_asks(const struct status_asked *a, const struct dp_queries *asks,
                                 struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < asks->shards; i++) {
        if (asks->shard[i].state == DP_ASK_REFUSED && asks->shard[i].status == DP_GENERATION)
            return dp_fail(err, DP_GENERATION, "shard %" PRIu32 ": %s", i, asks->shard[i].reason);
        if (asks->shard[i].state == DP_ASK_ANSWERED)
            st = dp_folder_check_live(a->file, a->cluster, i, err);
    }
    return st;
}

/* Opens the run's directory and reads its state, where nothing runs. false: something may run. */
static bool read_ended(const struct status_asked *a, const struct dp_status_view *view,
                       struct dp_folder *folder, struct dp_run_state *state)
{
    struct dp_error unheard = {0};
    for (uint32_t i = 0; i < view->servers; i++)
        if (view->server[i].state != DP_STATUS_DOWN)
            return false;
    if (!a->dir || dp_folder_open_to_read(a->dir, folder, &unheard) != DP_OK)
        return false; /* a command holds its lock */
    *state = dp_run_state_read(folder, a->cluster->training.run);
    if (!state->known)
        dp_folder_close(folder);
    return state->known;
}

/* How the run ended, and what may be done with it. */
static void print_ended(const struct status_asked *a, const struct dp_folder *folder,
                        const struct dp_run_state *state, FILE *to)
{
    char text[DP_RUN_PLACE_BYTES], next[DP_PATH_QUOTED + 64];
    uint32_t run = a->cluster->training.run;
    if (state->finished) {
        fprintf(to, "Run %" PRIu32 " in %s is finished, and its servers are stopped.\n", run, folder->path);
        dp_outcome_uses(a->cluster->model, folder->path, to);
        fprintf(to, "Contents of its store:   downpour inspect %s\n", dp_path_quote(folder->path, next));
        return;
    }
    const struct dp_run_place place = dp_run_place(folder, a->cluster);
    dp_run_place_text(&place, a->cluster, text);
    dp_run_resume_command(folder, next, sizeof next);
    fprintf(to, "Run %" PRIu32 " in %s is not finished (%s), and nothing is running.\nTo finish it: %s\n",
            run, folder->path, text, next);
}

static enum dp_status show(const struct status_asked *a, const struct dp_queries *asks,
                           struct dp_status_view *view, bool again, FILE *to, struct dp_error *err)
{
    bool moving = a->watch_ms > 0 && !a->screen && isatty(STDOUT_FILENO) == 1;
    struct dp_folder folder;
    struct dp_run_state state;
    enum dp_status st = DP_OK;
    bool ended = read_ended(a, view, &folder, &state);
    if (ended)
        view->ended = (struct dp_status_ended){true, state.finished, a->cluster->training.run};
    if (a->json) {
        char *json = dp_status_view_json(view, a->all ? asks : NULL);
        if (json)
            printf("%s\n", json);
        else
            st = dp_fail(err, DP_NOMEM, "no memory for the JSON of a status");
        free(json);
    } else {
        if (moving)
            fprintf(to, "\033[H\033[J");
        else if (again && !a->screen)
            fprintf(to, "\n");
        if (a->screen)
            fprintf(to, "downpour top: %.47s, every %" PRIu32 " s; q or Ctrl-C ends it\n\n", a->cluster->name,
                    a->watch_ms / 1000);
        if (ended)
            print_ended(a, &folder, &state, to);
        else
            dp_status_view_print(view, to);
        if (a->all)
            print_all(a->cluster, asks);
    }
    if (ended)
        dp_folder_close(&folder);
    return st;
}

/* *text: on the screen, heap memory; else NULL. */
static enum dp_status show_text(const struct status_asked *a, const struct dp_queries *asks,
                                struct dp_status_view *view, bool again, char **text, struct dp_error *err)
{
    size_t size = 0;
    *text = NULL;
    FILE *to = a->screen ? open_memstream(text, &size) : stdout;
    if (!to)
        return dp_fail(err, DP_NOMEM, "no memory for the text of a status");
    enum dp_status st = show(a, asks, view, again, to, err);
    if (a->screen && fclose(to) == 0 && *text)
        dp_screen_draw(*text);
    return st != DP_OK || fflush(stdout) == 0 ? st : dp_fail(err, DP_IO, "cannot write to standard output");
}

/* text: on the screen, drawn again where that has another size, or was stopped. */
static void wait_until(uint64_t at_ms, const char *text)
{
    bool quit = false;
    for (uint64_t now = dp_now_ms(); now < at_ms && !stopped; now = dp_now_ms()) {
        uint64_t left = at_ms - now;
        struct timespec pause = {(time_t)(left / 1000), (long)(left % 1000) * 1000000};
        if (!text) {
            (void)nanosleep(&pause, NULL); /* a signal ends it */
            continue;
        }
        dp_screen_wait(at_ms, &quit);
        dp_screen_draw(text);
        stopped = stopped || quit;
    }
}

/* *serve: all did, the last time. */
static enum dp_status watch(const struct status_asked *a, bool *serve, struct dp_error *err)
{
    struct dp_status_view earlier = {0};
    enum dp_status st = DP_OK;
    char prefix[64];
    (void)snprintf(prefix, sizeof prefix, "run/%" PRIu32 "/progress/", a->cluster->training.run);
    for (bool again = false; st == DP_OK && !(again && stopped); again = true) {
        struct dp_queries asks = {0};
        struct dp_status_view view = {0};
        uint64_t begun = dp_now_ms();
        char *text = NULL;
        st = dp_cluster_find(a->cluster, a->timeout_ms, err);
        if (st == DP_OK || dp_status_class((int)st) == DP_CLASS_RETRY) /* those that are not found are down */
            st = dp_queries_send(a->cluster, prefix, a->timeout_ms, &asks, err);
        if (st == DP_OK)
            st = check_asks(a, &asks, err);
        if (st == DP_OK)
            st = dp_status_view_gather(a->cluster, &asks, dp_now_ms(), again ? &earlier : NULL, &view, err);
        if (st == DP_OK)
            st = show_text(a, &asks, &view, again, &text, err);
        *serve = dp_status_view_all_serve(&view);
        dp_status_view_clear(&earlier);
        earlier = view;
        dp_queries_clear(&asks);
        if (a->watch_ms > 0 && st == DP_OK)
            wait_until(begun + a->watch_ms, text);
        free(text);
        if (a->watch_ms == 0)
            break;
    }
    dp_status_view_clear(&earlier);
    return st;
}

/* Of status, or of top. */
static enum dp_status take_flags(const struct dp_command *of, const char *const *values,
                                 struct status_asked *a, char conf[DP_PATH_MAX + 1], struct dp_error *err)
{
    const bool top = of == &top_command;
    const char *file = dp_options_value(of, values, "--cluster"),
               *dir = dp_options_value(of, values, "--dir");
    const char *flag = top ? "--every" : "--watch", *every = dp_options_value(of, values, flag);
    uint64_t seconds = 2, pause = every || top ? 2 : 0;
    enum dp_status st = DP_OK;
    if (!file == !dir)
        return dp_fail(err, DP_ARGUMENT,
                       "give either --cluster FILE or --dir DIR; 'downpour %s --help' lists all flags",
                       of->name);
    struct dp_folder folder = {.lock = -1};
    if (dir)
        st = dp_folder_find_running(dir, &folder, err);
    memcpy(conf, folder.conf, sizeof folder.conf);
    if (st == DP_OK && !top)
        st = dp_options_u64(of, values, "--timeout", 1, 600, 2, &seconds, err);
    if (st == DP_OK && every && *every)
        st = dp_parse_u64(every, 1, 3600, flag, &pause, err);
    if (st != DP_OK)
        return st;
    a->file = dir ? conf : file;
    a->dir = dir;
    a->timeout_ms = (uint32_t)seconds * 1000;
    a->watch_ms = (uint32_t)pause * 1000;
    a->json = !top && dp_options_value(of, values, "--json") != NULL;
    a->all = !top && dp_options_value(of, values, "--all") != NULL;
    return dp_cluster_read(a->file, &a->cluster, err);
}

static int run(const struct dp_command *of, int argc, char *const *argv)
{
    const char *values[OPTIONS];
    char conf[DP_PATH_MAX + 1];
    struct dp_error err = {0};
    struct status_asked a = {0};
    bool help, serve = false;
    enum dp_status st = dp_options_parse(of, argc, argv, values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(of);
    if (st == DP_OK)
        st = take_flags(of, values, &a, conf, &err);
    struct sigaction act = {.sa_handler = stop}; /* not restarted: a wait ends */
    if (st == DP_OK && a.watch_ms > 0) {
        (void)sigaction(SIGINT, &act, NULL);
        (void)sigaction(SIGTERM, &act, NULL);
    }
    if (st == DP_OK && of == &top_command) {
        (void)sigaction(SIGQUIT, &act, NULL);
        (void)sigaction(SIGHUP, &act, NULL);
        a.screen = dp_screen_begin();
    }
    if (st == DP_OK)
        st = watch(&a, &serve, &err);
    dp_screen_end();
    dp_cluster_free(&a.cluster);
    if (st != DP_OK)
        fprintf(stderr, "downpour: %s\n", err.text);
    return st != DP_OK ? 2 : serve ? 0 : DOWN_CODE;
}

int dp_run_status(int argc, char *const *argv)
{
    return run(&command, argc, argv);
}

int dp_run_top(int argc, char *const *argv)
{
    return run(&top_command, argc, argv);
}
