/* status: what each shard of a running cluster says of itself. */
#include "deploy/cli/commands.h"
#include "deploy/cli/options.h"
#include "deploy/cli/progress.h"
#include "deploy/cli/servers.h"

#include "common/base/parse.h"
#include "common/wire/reply.h"

#include <inttypes.h>

static const struct dp_option options[] = {
    {"--cluster", "FILE", "the cluster file that its servers were started from (needed)", NULL, NULL},
    {"--timeout", "SECONDS", "until every shard has answered, 1 .. 600; default 5", NULL, NULL},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "status",
    .usage = "--cluster FILE",
    .summary = "Asks every shard of a running cluster: tables, rows, bytes and counters.",
    .options = options,
    .count = OPTIONS,
};

static void print_report(const struct dp_status_report *report, const char *endpoint)
{
    char rows[32], bytes[32];
    printf("shard %" PRIu32 " of %" PRIu32 " at %s\n", report->shard, report->shards, endpoint);
    if (report->tables)
        printf("  %-24s %8s %10s %14s %18s\n", "table", "width", "optimizer", "rows", "bytes");
    for (uint32_t i = 0; i < report->tables; i++) {
        const struct dp_table_status *t = &report->table[i];
        const char *optimizer = dp_cluster_optimizer_name(&t->spec.optimizer);
        printf("  %-24s %8" PRIu32 " %10s %14s %18s\n", t->spec.name, t->spec.dim,
               optimizer ? optimizer : "?", dp_cli_number((double)t->rows, rows, sizeof rows),
               dp_cli_number((double)t->bytes, bytes, sizeof bytes));
    }
    for (uint32_t i = 0; i < report->counters; i++)
        printf("  %-40s %20s\n", report->counter[i].name,
               dp_cli_number((double)report->counter[i].value, rows, sizeof rows));
}

/* Who answers is asked first: while a server opens its store it does not have it open yet. */
static enum dp_status print_all(const char *file, const struct dp_cluster *cluster, uint32_t timeout_ms,
                                struct dp_error *err)
{
    struct dp_client *client = NULL;
    enum dp_status st = dp_servers_client(cluster, "downpour status", timeout_ms, &client, err);
    if (st == DP_OK)
        st = dp_folder_check_live(file, cluster, err);
    for (uint32_t i = 0; st == DP_OK && i < dp_cluster_shards(cluster); i++) {
        struct dp_status_report *report = NULL;
        char endpoint[DP_HOST_MAX + 32];
        dp_cluster_shard_endpoint(cluster, i, endpoint, sizeof endpoint);
        st = dp_client_status(client, i, timeout_ms, &report, err);
        if (st == DP_OK)
            print_report(report, endpoint);
        dp_client_status_free(&report);
    }
    dp_client_close(&client);
    return st;
}

int dp_command_status(int argc, char *const *argv)
{
    const char *values[OPTIONS];
    struct dp_error err = {0};
    struct dp_cluster *cluster = NULL;
    uint64_t seconds = 5;
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    const char *file = st == DP_OK ? dp_options_value(&command, values, "--cluster") : NULL;
    const char *timeout = st == DP_OK ? dp_options_value(&command, values, "--timeout") : NULL;
    if (st == DP_OK && !file)
        st = dp_fail(&err, DP_ARGUMENT, "--cluster FILE is needed; 'downpour status --help' lists all flags");
    if (st == DP_OK && timeout)
        st = dp_parse_u64(timeout, 1, 600, "--timeout", &seconds, &err);
    if (st == DP_OK)
        st = dp_cluster_read(file, &cluster, &err);
    if (st == DP_OK)
        st = print_all(file, cluster, (uint32_t)seconds * 1000, &err);
    dp_cluster_free(&cluster);
    if (fflush(stdout) != 0 && st == DP_OK)
        st = dp_fail(&err, DP_IO, "cannot write to standard output");
    if (st != DP_OK)
        fprintf(stderr, "downpour: %s\n", err.text);
    return st == DP_OK ? 0 : 2;
}
