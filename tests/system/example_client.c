/* A program of a user's own: opens a cluster, makes a table, pulls rows, pushes gradients, waits.
 *     example_client DIR/cluster.conf
 *     example_client tcp://127.0.0.1:5701 tcp://127.0.0.1:5702        (all shards, in order)
 * Prints one weight before and after: plain SGD at rate 0.5 with gradient 1 lowers it by 0.5 a push. Each run
 * takes its table a step further. With addresses, EXAMPLE_CLUSTER is
 * the cluster's id. */
#ifdef DOWNPOUR_INSTALLED
#include <downpour/downpour.h>
#else
#include "common/client/downpour.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, DIM = 8, TIMEOUT_MS = 10000 };

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static enum dp_status run(struct dp_client *client, struct dp_error *err)
{
    static uint64_t key[ROWS];
    static float before[ROWS][DIM], after[ROWS][DIM], gradient[ROWS][DIM];
    struct dp_table_spec spec = {.name = "example", .dim = DIM, .seed = 7};
    struct dp_client_table *table;
    spec.init = (struct dp_init_spec){.kind = DP_INIT_NORMAL, .scale = 0.1f};
    spec.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    for (uint64_t i = 0; i < ROWS; i++) {
        key[i] = i * 1000003; /* any numbers: users, words, hashes */
        for (int c = 0; c < DIM; c++)
            gradient[i][c] = 1;
    }
    enum dp_status st = dp_client_table(client, &spec, TIMEOUT_MS, &table, err);
    if (st == DP_OK)
        st = dp_client_pull_rows(client, table, key, ROWS, before[0], TIMEOUT_MS, err);
    if (st == DP_OK)
        st = dp_client_push_rows(client, table, key, ROWS, gradient[0], 0.5f, TIMEOUT_MS, err);
    if (st == DP_OK)
        st = dp_client_pull_rows(client, table, key, ROWS, after[0], TIMEOUT_MS, err);
    if (st == DP_OK)
        printf("%d rows of %d: weight %.4f before, %.4f after\n", ROWS, DIM, (double)before[ROWS - 1][0],
               (double)after[ROWS - 1][0]);
    return st;
}

int main(int argc, char **argv)
{
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    struct dp_client_options options = {.name = "example",
                                        .cluster = number_from("EXAMPLE_CLUSTER", 1),
                                        .shards = (const char *const *)(argv + 1),
                                        .shard_count = (uint32_t)(argc - 1)};
    const char *file = argc == 2 && !strstr(argv[1], "://") ? argv[1] : NULL;
    enum dp_status st =
        file ? dp_client_open_file(file, NULL, &client, &err) : dp_client_open(&options, &client, &err);
    if (st == DP_OK)
        st = run(client, &err);
    if (st != DP_OK)
        (void)fprintf(stderr, "example: %s\n", err.text);
    dp_client_close(&client);
    return st == DP_OK ? 0 : 2;
}
