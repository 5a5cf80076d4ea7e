#include "deploy/checkpoint/dead_orders.h"

#include "common/base/deadline.h"
#include "common/client/checkpoint.h"
#include "common/model/mix.h"
#include "server/checkpoint/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define BOOT_ID    "/proc/sys/kernel/random/boot_id"
#define UPPER_HALF (UINT64_MAX << 32)

static uint64_t upper_half(uint64_t cluster, uint64_t machine)
{
    return dp_mix(cluster ^ dp_mix(machine)) & UPPER_HALF;
}

uint64_t dp_dead_orders_machine(void)
{
    char text[64];
    uint64_t machine = 0;
    FILE *file = fopen(BOOT_ID, "re");
    bool read = file && fgets(text, sizeof text, file);
    if (file)
        (void)fclose(file);
    for (const char *c = text; read && *c; c++)
        machine = dp_mix(machine ^ (unsigned char)*c);
    if (!read) /* no order is known as one of this machine */
        DP_ASSERT(getrandom(&machine, sizeof machine, 0) == (ssize_t)sizeof machine);
    return machine;
}

uint64_t dp_dead_orders_draw(uint64_t cluster, uint64_t machine)
{
    uint32_t drawn;
    DP_ASSERT(getrandom(&drawn, sizeof drawn, 0) == (ssize_t)sizeof drawn);
    return upper_half(cluster, machine) | drawn | 1;
}

static enum dp_status see_name(void *context, const char *name, struct dp_error *err)
{
    struct dp_dead_orders *dead = context;
    uint64_t order;
    (void)err;
    if (dead->count < DP_DEAD_ORDERS_MAX && dp_checkpoint_name_order(name, &order) &&
        (order & UPPER_HALF) == upper_half(dead->cluster, dead->machine))
        dead->order[dead->count++] = order;
    return DP_OK;
}

struct ending {
    struct dp_client *client;
    struct dp_checkpoint_ask *asks;
    struct dp_checkpoint_answer *answers;
    uint32_t shards;
    uint64_t until_ms;
};

/* False: not all shards have answered in time. */
static bool ask(const struct ending *a, enum dp_checkpoint_action action, uint64_t order, bool *known)
{
    struct dp_error ignored; /* the next order meets it, too */
    uint64_t now_ms = dp_now_ms();
    if (now_ms >= a->until_ms)
        return false;
    for (uint32_t i = 0; i < a->shards; i++)
        a->asks[i] = (struct dp_checkpoint_ask){.action = action, .order = order};
    enum dp_status st =
        dp_client_checkpoint(a->client, a->asks, a->answers, (uint32_t)(a->until_ms - now_ms), &ignored);
    for (uint32_t i = 0; i < a->shards; i++)
        *known = *known || (a->answers[i].answered && a->answers[i].state.order == order);
    dp_client_checkpoint_clear(a->answers, a->shards);
    return st == DP_OK;
}

static enum dp_status end_all(struct dp_dead_orders *orders, const struct ending *a, struct dp_error *err)
{
    for (uint32_t i = 0; i < orders->count; i++) {
        bool *known = &orders->known[i];
        if (orders->stopped(orders->context))
            return dp_fail(err, DP_STOPPING, "interrupted while ending orders of commands that were killed");
        if (!ask(a, DP_CHECKPOINT_LOOK, orders->order[i], known) ||
            (*known && !ask(a, DP_CHECKPOINT_ABANDON, orders->order[i], known)))
            return DP_OK;
    }
    return DP_OK;
}

enum dp_status dp_dead_orders_end(struct dp_dead_orders *orders, struct dp_client *client,
                                  struct dp_error *err)
{
    uint32_t shards = dp_client_shards(client);
    const struct ending a = {.client = client,
                             .asks = calloc(shards, sizeof *a.asks),
                             .answers = calloc(shards, sizeof *a.answers),
                             .shards = shards,
                             .until_ms = dp_now_ms() + DP_DEAD_ORDERS_MS};
    enum dp_status st = a.asks && a.answers ? dp_checkpoint_visit(orders->directory, see_name, orders, err)
                                            : dp_fail(err, DP_NOMEM, "no memory for orders");
    if (st == DP_OK)
        st = end_all(orders, &a, err);
    free(a.answers);
    free(a.asks);
    return st;
}

void dp_dead_orders_sweep(const struct dp_dead_orders *orders)
{
    for (uint32_t i = 0; i < orders->count; i++) {
        struct dp_checkpoint_path path;
        struct dp_error err;
        enum dp_status st = dp_checkpoint_path_making(orders->directory, orders->order[i], &path, &err);
        if (st == DP_OK && !orders->known[i] && rmdir(path.text) != 0)
            continue; /* another cluster's shards may copy for it */
        if (st == DP_OK)
            st = dp_checkpoint_remove_directory(path.text, &err);
        if (st != DP_OK)
            fprintf(stderr, "downpour: warning: %s; the next checkpoint tries again\n", err.text);
    }
}
