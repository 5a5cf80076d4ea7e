#include "tests/system/train_ledger_read.h"

#include "tests/lib/test.h"
#include "tests/system/place.h"
#include "tests/system/train_ledger.h"

#include "common/config/cluster_client.h"
#include "common/model/mix.h"

#include <stdlib.h>

static struct dp_client *connect_to(const struct dp_cluster *cluster)
{
    struct dp_client *client = NULL;
    struct dp_error err = {0};
    const struct dp_client_options options = {.name = "test", .open_timeout_ms = DP_SOON_MS * DP_PATIENCE};
    if (dp_cluster_client(cluster, &options, &client, &err) != DP_OK)
        fail_msg("%s", err.text);
    return client;
}

void dp_train_ledger_read(const char *conf, uint32_t epochs, uint32_t numbers,
                          void (*visit)(void *context, uint32_t epoch, uint32_t number, const float *counts),
                          void *context)
{
    const struct dp_table_spec spec = dp_train_ledger_spec();
    struct dp_cluster *cluster = NULL;
    struct dp_client_table *table = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_cluster_read(conf, &cluster, &err), DP_OK);
    struct dp_client *client = connect_to(cluster);
    const uint32_t places = DP_TRAIN_LEDGER_PLACES;
    size_t n = (size_t)places * numbers;
    uint64_t *keys = calloc(n, sizeof *keys);
    float *counts = calloc(n, sizeof *counts);
    assert_true(keys && counts);
    if (dp_client_table(client, &spec, DP_SOON_MS * DP_PATIENCE, &table, &err) != DP_OK)
        fail_msg("%s", err.text);
    for (uint32_t e = 0; e < epochs; e++) {
        for (size_t i = 0; i < n; i++)
            keys[i] = dp_unmix(dp_train_ledger_row((uint32_t)(i % places), e, i / places));
        if (dp_client_pull_rows(client, table, keys, n, counts, DP_SOON_MS * DP_PATIENCE, &err) != DP_OK)
            fail_msg("%s", err.text);
        for (uint32_t number = 0; number < numbers; number++)
            visit(context, e, number, counts + (size_t)number * places);
    }
    free(keys);
    free(counts);
    dp_client_close(&client);
    dp_cluster_free(&cluster);
}
