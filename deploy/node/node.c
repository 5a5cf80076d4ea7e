/* node: one process of a cluster, under any launcher.
 *     rank -> server or worker -> child, restarted after a crash -> its end, or the launcher's */
#include "deploy/node/node_commands.h"

#include "common/base/deadline.h"
#include "common/base/parse.h"
#include "common/config/cluster_place.h"
#include "common/env/installed.h"
#include "deploy/cli/options_words.h"
#include "deploy/node/child_log.h"
#include "deploy/node/launcher.h"
#include "deploy/node/rank.h"
#include "deploy/supervise/local.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#define LOOK_MS          50u
#define WORKER_STOP_MS   10000u
#define SERVER_STOP_MS   3600000u /* rows are written back; the launcher may be less patient */
#define RESTARTS_DEFAULT 20u
#define RESTARTS_MAX     10000u

static const struct dp_option options[] = {
    {"--rank", "N", NULL,
     "which process this is: 0 to S - 1 are the servers of the cluster file, the next are its workers; "
     "default: "
     "DOWNPOUR_RANK, or what the launcher sets (SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, "
     "JOB_COMPLETION_INDEX, RANK)"},
    {"--role", "ROLE", NULL, "server or worker: the rank then is its number, from 0"},
    {"--number", "N", NULL, "with --role: its number, in place of the rank"},
    {"--first", "HOST[:PORT]", NULL,
     "the first server, where the cluster file only counts the servers; default: 'first' of the file, "
     "DOWNPOUR_FIRST or MASTER_ADDR"},
    {"--new", NULL, NULL,
     "at the first start: begin a new cluster where server 0 has no store and the cluster file has no "
     "'checkpoint' that says so; of no effect where there is a store, and when the process is restarted"},
    {"--replace-store", NULL, NULL,
     "a server: start without a store that is lost, so that its shard starts empty (downpour-server --help); "
     "not when the process is restarted"},
    {"--restarts", "N", NULL,
     "restart the process if it crashes or is killed, up to N times within 10 minutes, 0 .. 10000; default "
     "20"},
    {"--give-up", NULL, NULL,
     "end with exit code 3 when a worker has found the servers out of reach for the timeout "
     "(training.timeout_ms), or a server the first one for 40 times that; by default it is started again "
     "without a limit"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "node",
    .usage = "FILE [FLAGS]",
    .summary = "Runs one server or worker of a cluster file, as this process's rank says, and ends when the "
               "run ends.\n"
               "A launcher starts it once for each server and worker, in the same way:\n"
               "    mpirun --host a,b,c,d downpour node cluster.conf\n"
               "    srun --ntasks 4 downpour node cluster.conf\n"
               "Its process is restarted after a crash. Exit code: 0 done; 2 it would fail again; 3 try "
               "again: stopped by\n"
               "a signal, or with --give-up servers out of reach.",
    .options = options,
    .count = OPTIONS,
};

struct node {
    struct dp_words words;
    const char *values[OPTIONS], *file;
    struct dp_cluster *cluster;
    struct dp_cluster_place place;
    uint64_t restarts;
    bool gives_up, help;
    struct dp_launcher launcher;
    struct dp_local *local;
    struct dp_child_log log;
};

static const char *value(const struct node *node, const char *name)
{
    return dp_options_value(&command, node->values, name);
}

static enum dp_status read_flags(int argc, char *const *argv, struct node *node, struct dp_error *err)
{
    enum dp_status st =
        dp_words_parse(&command, NULL, argc, argv, &node->words, node->values, &node->help, err);
    if (st != DP_OK || node->help)
        return st;
    if (node->words.words != 1)
        return dp_fail(err, DP_ARGUMENT, "give one cluster file: downpour node FILE");
    if (value(node, "--number") && !value(node, "--role"))
        return dp_fail(err, DP_ARGUMENT, "--number goes with --role; --rank counts servers and workers");
    if (value(node, "--number") && value(node, "--rank"))
        return dp_fail(err, DP_ARGUMENT, "give --rank or --number, not both");
    node->file = node->words.word[0];
    node->gives_up = value(node, "--give-up") != NULL;
    return dp_options_u64(&command, node->values, "--restarts", 0, RESTARTS_MAX, RESTARTS_DEFAULT,
                          &node->restarts, err);
}

static enum dp_status find_place(struct node *node, struct dp_error *err)
{
    const char *role = value(node, "--role"), *number = value(node, "--number");
    struct dp_node_rank rank = {.name = "--number"};
    bool worker = role && strcmp(role, "worker") == 0;
    if (role && !worker && strcmp(role, "server") != 0)
        return dp_fail(err, DP_ARGUMENT, "--role is \"%.40s\", but must be server or worker", role);
    enum dp_status st = number ? dp_parse_u64(number, 0, UINT32_MAX, "--number", &rank.rank, err)
                               : dp_node_rank_find(value(node, "--rank"), &rank, err);
    if (st != DP_OK)
        return st;
    if (role)
        return dp_cluster_place_check(node->cluster, worker, rank.rank, rank.name, &node->place, err);
    uint32_t all = dp_cluster_places(node->cluster);
    if (rank.size > 0 && rank.size < all)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu64 ", and the cluster file has %" PRIu32 " servers and %" PRIu32
                       " workers: start %" PRIu32 " processes",
                       rank.size_name, rank.size, node->cluster->server_count,
                       node->cluster->training.workers, all);
    return dp_cluster_place_of(node->cluster, rank.rank, rank.name, &node->place, err);
}

static enum dp_local_role role_of(const struct node *node)
{
    return node->place.is_worker ? DP_LOCAL_WORKER : DP_LOCAL_SERVER;
}

static enum dp_status start(struct node *node, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], number[16], name[32], log[32], begun[24];
    uint64_t start = 0;
    bool worker = node->place.is_worker;
    (void)dp_cluster_place_text(&node->place, name);
    (void)snprintf(number, sizeof number, "%" PRIu32, node->place.number);
    (void)snprintf(log, sizeof log, "%s-%s", worker ? "worker" : "server", number);
    enum dp_status st =
        dp_installed_program(worker ? "downpour-worker" : "downpour-server", program, sizeof program, err);
    if (st == DP_OK && getrandom(&start, sizeof start, 0) != (ssize_t)sizeof start)
        st = dp_fail(err, DP_IO, "cannot draw a number for this start");
    (void)snprintf(begun, sizeof begun, "%016" PRIx64, start);
    const char *argv[13] = {program, "--cluster", node->file, worker ? "--worker" : "--server", number};
    size_t n = 5;
    /* An earlier process may have begun a run with a number; else the first server says which it is. */
    if (!worker) {
        argv[n++] = "--until-done";
        argv[n++] = "--start";
        argv[n++] = begun;
    } else if (node->cluster->training.run > 0)
        argv[n++] = "--resume";
    if (!worker && value(node, "--new"))
        argv[n++] = "--new";
    if (!worker && value(node, "--replace-store"))
        argv[n++] = "--replace-store";
    if (value(node, "--first")) {
        argv[n++] = "--first";
        argv[n++] = value(node, "--first");
    }
    if (st == DP_OK)
        st = dp_local_open(&node->local, err);
    if (st == DP_OK)
        st = dp_child_log_begin(&node->log, node->cluster->log, log, err);
    if (st != DP_OK)
        return st;
    dp_local_restart_dead(node->local, (uint32_t)node->restarts);
    if (!node->gives_up)
        dp_local_restart_retries(node->local);
    if (node->log.is_kept)
        dp_local_title(node->local, name);
    st = dp_local_start(node->local, role_of(node), name, argv, node->log.path, -1, err);
    if (st != DP_OK)
        return st;
    dp_local_start_again_with(node->local, "--new", NULL); /* it was begun */
    dp_local_start_again_with(node->local, "--replace-store", NULL);
    return DP_OK;
}

static void tell_news(struct node *node)
{
    char text[256];
    dp_child_log_copy(&node->log);
    while (dp_local_news(node->local, text, sizeof text))
        fprintf(stderr, "downpour node: %s\n", text);
}

static bool runs(const struct node *node)
{
    return dp_local_running(node->local, role_of(node)) > 0;
}

/* Until the process has ended, or is to end; NULL: it has. */
static const char *supervise(struct node *node)
{
    while (runs(node)) {
        dp_local_wait(node->local, LOOK_MS);
        tell_news(node);
        if (dp_local_signal(node->local))
            return strsignal(dp_local_signal(node->local));
        if (dp_launcher_is_missing(&node->launcher))
            return "the process that started it has ended";
    }
    return NULL;
}

/* It answers until its peers have left, and writes its rows back. */
static void stop(struct node *node, const char *why)
{
    char name[32];
    uint64_t deadline = dp_now_ms() + (node->place.is_worker ? WORKER_STOP_MS : SERVER_STOP_MS);
    fprintf(stderr, "downpour node: %s: stopping %s\n", why, dp_cluster_place_text(&node->place, name));
    dp_local_ask_to_stop(node->local, role_of(node));
    while (runs(node) && dp_now_ms() < deadline) {
        dp_local_wait(node->local, LOOK_MS);
        dp_child_log_copy(&node->log);
    }
    if (runs(node))
        (void)dp_local_stop(node->local, role_of(node), 0);
}

/* The exit code. */
static int run(struct node *node, struct dp_error *err)
{
    char name[32];
    enum dp_status st = start(node, err);
    if (st != DP_OK)
        return dp_status_exit(st);
    const char *why = supervise(node);
    if (why)
        stop(node, why);
    dp_child_log_end(&node->log);
    int code = dp_local_exit_code(node->local);
    if (why)
        return code == DP_EXIT_DONE && node->place.is_worker ? DP_EXIT_DONE : DP_EXIT_RETRY;
    if (code != DP_EXIT_DONE)
        fprintf(stderr, "downpour node: %s ended with status %d\n", dp_cluster_place_text(&node->place, name),
                code);
    return code == DP_EXIT_DONE || code == DP_EXIT_RETRY ? code : DP_EXIT_FAILED;
}

int dp_node(int argc, char *const *argv)
{
    struct node node = {.launcher = dp_launcher_begin()};
    struct dp_error err = {0};
    int code = DP_EXIT_DONE;
    enum dp_status st = read_flags(argc, argv, &node, &err);
    if (st == DP_OK && node.help) {
        dp_words_clear(&node.words);
        return dp_options_show_help(&command);
    }
    if (st == DP_OK)
        st = dp_cluster_read(node.file, &node.cluster, &err);
    if (st == DP_OK && value(&node, "--first")) /* here, too, so that it is refused once */
        st = dp_cluster_set_first(node.cluster, value(&node, "--first"), "--first", &err);
    if (st == DP_OK)
        st = dp_cluster_has_first(node.cluster, &err);
    if (st == DP_OK)
        st = find_place(&node, &err);
    code = st == DP_OK ? run(&node, &err) : dp_status_exit(st);
    if (err.status != DP_OK)
        fprintf(stderr, "downpour node: %s\n", err.text);
    dp_local_close(&node.local);
    dp_child_log_end(&node.log);
    dp_cluster_free(&node.cluster);
    dp_words_clear(&node.words);
    return code;
}
