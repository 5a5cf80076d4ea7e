#include "tests/bench/program/bench_clients.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define OPEN_MS 10000u

struct bench_client {
    struct dp_bench_clients *all;
    struct dp_client *client;
    struct dp_client_table *table;
    struct dp_bench_rows work;
    uint64_t first; /* the sets of keys begin there: clients push different ones */
    pthread_t thread;
    bool runs;
    struct dp_error err;
};

struct dp_bench_clients {
    atomic_bool stop;
    _Atomic uint64_t rows;
    uint32_t count, in_flight;
    struct bench_client client[DP_BENCH_CLIENTS_MAX];
};

static void *push(void *context)
{
    struct bench_client *c = context;
    struct dp_bench_clients *all = c->all;
    struct dp_load load = dp_bench_rows_load(&c->work);
    uint64_t issued = 0, finished = 0;
    enum dp_status st = DP_OK;
    while (st == DP_OK && (finished < issued || !atomic_load(&all->stop))) {
        bool full = issued - finished == all->in_flight || atomic_load(&all->stop);
        if (full && finished < issued) {
            st = load.finish(load.self, (uint32_t)(finished % all->in_flight), &c->err);
            if (st == DP_OK)
                atomic_fetch_add(&all->rows, load.rows(load.self, c->first + finished));
            finished++;
        } else if (!full) {
            st = load.issue(load.self, (uint32_t)(issued % all->in_flight), c->first + issued, &c->err);
            issued++;
        }
    }
    c->err.status = st;
    return NULL;
}

static enum dp_status open_client(struct dp_bench_server *server, const struct dp_bench_keys *keys,
                                  struct bench_client *c, uint32_t index, struct dp_error *err)
{
    char name[32];
    const struct dp_table_spec spec = dp_bench_server_table(server);
    (void)snprintf(name, sizeof name, "bench %" PRIu32, index);
    c->first = (uint64_t)index * keys->sets / DP_BENCH_CLIENTS_MAX;
    enum dp_status st = dp_servers_client(server->cluster, name, OPEN_MS, &c->client, err);
    if (st == DP_OK)
        st = dp_client_table(c->client, &spec, OPEN_MS, &c->table, err);
    if (st == DP_OK)
        st = dp_bench_rows_new(keys, server->options.dim, c->all->in_flight, &c->work, err);
    if (st == DP_OK)
        dp_bench_rows_set(&c->work, c->client, c->table, true, false);
    return st;
}

static enum dp_status start_threads(struct dp_bench_clients *all, struct dp_error *err)
{
    sigset_t signals, before;
    enum dp_status st = DP_OK;
    (void)sigfillset(&signals);
    (void)pthread_sigmask(SIG_SETMASK, &signals, &before);
    for (uint32_t i = 0; st == DP_OK && i < all->count; i++) {
        all->client[i].runs = pthread_create(&all->client[i].thread, NULL, push, &all->client[i]) == 0;
        if (!all->client[i].runs)
            st = dp_fail(err, DP_NOMEM, "cannot start a thread for a client");
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

enum dp_status dp_bench_clients_start(struct dp_bench_server *server, const struct dp_bench_keys *keys,
                                      uint32_t clients, uint32_t in_flight, struct dp_bench_clients **out,
                                      struct dp_error *err)
{
    struct dp_error ignored;
    struct dp_bench_clients *all = *out = calloc(1, sizeof *all);
    if (!all)
        return dp_fail(err, DP_NOMEM, "no memory for clients");
    DP_ASSERT(clients <= DP_BENCH_CLIENTS_MAX && in_flight <= DP_BENCH_IN_FLIGHT_MAX);
    all->in_flight = in_flight;
    enum dp_status st = DP_OK;
    for (; st == DP_OK && all->count < clients; all->count++) {
        all->client[all->count].all = all;
        st = open_client(server, keys, &all->client[all->count], all->count, err);
    }
    if (st == DP_OK)
        st = start_threads(all, err);
    if (st != DP_OK && dp_bench_clients_stop(out, &ignored) != DP_OK)
        return st;
    return st;
}

uint64_t dp_bench_clients_rows(const struct dp_bench_clients *clients)
{
    return atomic_load(&clients->rows);
}

enum dp_status dp_bench_clients_stop(struct dp_bench_clients **clients, struct dp_error *err)
{
    struct dp_bench_clients *all = *clients;
    enum dp_status st = DP_OK;
    *clients = NULL;
    if (!all)
        return DP_OK;
    atomic_store(&all->stop, true);
    for (uint32_t i = 0; i < all->count; i++) {
        struct bench_client *c = &all->client[i];
        if (c->runs)
            (void)pthread_join(c->thread, NULL);
        if (st == DP_OK && c->err.status != DP_OK) {
            *err = c->err;
            st = c->err.status;
        }
        dp_bench_rows_clear(&c->work);
        dp_client_close(&c->client);
    }
    free(all);
    return st;
}
