/* drop: removes tables from a running cluster. */
#include "deploy/cli/commands.h"
#include "deploy/cli/options_words.h"

#include "common/client/downpour.h"
#include "common/config/cluster_client.h"
#include "common/wire/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OPEN_MS 10000u

static const struct dp_option options[] = {
    {"--cluster", "FILE", NULL, "cluster file that the servers were started with"},
    {"--timeout", "SECONDS", NULL,
     "how long to wait for each table, 1 .. 3600: its rows are written back first, and a checkpoint under "
     "way is "
     "waited for; default 60"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "drop",
    .usage = "--cluster FILE TABLE...",
    .summary =
        "Removes tables and all their rows from all servers of a running cluster, durably. Their names are "
        "free "
        "afterwards.\nPulls and pushes of them are refused from then on. Checkpoints made before still have "
        "them.\nIf it is interrupted, or a server dies, some servers may still have the table: run it again. "
        "'downpour status\n--cluster FILE --all' lists the tables.",
    .options = options,
    .count = OPTIONS,
};

/* Whether a server has the table; unknown counts as so. */
static bool is_there(struct dp_client *client, const char *name)
{
    bool there = false;
    for (uint32_t s = 0; s < dp_client_shards(client) && !there; s++) {
        struct dp_status_report *report = NULL;
        there = dp_client_status(client, s, OPEN_MS, &report, NULL) != DP_OK;
        for (uint32_t t = 0; report && t < report->tables; t++)
            there = there || strcmp(report->table[t].spec.name, name) == 0;
        dp_client_status_free(&report);
    }
    return there;
}

static enum dp_status drop_all(const struct dp_words *words, const char *const *values, struct dp_error *err)
{
    const char *file = dp_options_value(&command, values, "--cluster");
    const struct dp_client_options options_of = {.name = "downpour drop", .open_timeout_ms = OPEN_MS};
    struct dp_cluster *cluster = NULL;
    struct dp_client *client = NULL;
    uint64_t seconds = 0;
    if (!file || words->words == 0)
        return dp_fail(
            err, DP_ARGUMENT,
            "give the cluster file and the tables to remove: downpour drop --cluster FILE TABLE...");
    enum dp_status st = dp_options_u64(&command, values, "--timeout", 1, 3600, 60, &seconds, err);
    if (st == DP_OK)
        st = dp_cluster_read(file, &cluster, err);
    if (st == DP_OK)
        st = dp_cluster_client(cluster, &options_of, &client, err);
    for (size_t i = 0; i < words->words && st == DP_OK; i++) {
        const char *name = words->word[i];
        bool there = is_there(client, name);
        st = dp_client_table_drop(client, name, (uint32_t)seconds * 1000, err);
        if (st == DP_OK)
            printf(there ? "table '%s' is dropped\n" : "table '%s' is on no server\n", name);
    }
    dp_client_close(&client);
    dp_cluster_free(&cluster);
    return st;
}

int dp_command_drop(int argc, char *const *argv)
{
    const char *values[OPTIONS];
    struct dp_words words = {0};
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = dp_words_parse(&command, NULL, argc, argv, &words, values, &help, &err);
    if (st == DP_OK && !help)
        st = drop_all(&words, values, &err);
    dp_words_clear(&words);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st != DP_OK)
        fprintf(stderr, "downpour: %s\n", err.text);
    return st == DP_OK ? 0 : 2;
}
