#include "deploy/run/status_view.h"

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/wire/counters.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INDENT   8 /* behind a server's number */
#define SILENT_S 10.0

static const char *const state_names[] = {"serving", "not serving", "down"};

uint64_t dp_status_view_counter(const struct dp_status_report *report, const char *name)
{
    return dp_counter_value(report->counter, report->counters, name);
}

/* ---- gather */

static void add_shard(struct dp_status_server *s, const struct dp_status_report *r, uint64_t *stale_sum,
                      uint64_t *stale_pushes)
{
    uint64_t up_ms = dp_status_view_counter(r, "up_ms"),
             free_bytes = dp_status_view_counter(r, "store_disk_free_bytes");
    s->tables = r->tables > s->tables ? r->tables : s->tables;
    for (uint32_t t = 0; t < r->tables; t++)
        s->rows += r->table[t].rows;
    s->rows_pulled += dp_status_view_counter(r, "pull_rows");
    s->rows_pushed += dp_status_view_counter(r, "push_rows");
    s->pulls_held += dp_status_view_counter(r, "pulls_held_now");
    s->journal_bytes += dp_status_view_counter(r, "journal_kept_bytes");
    s->disk_bytes += dp_status_view_counter(r, "store_file_bytes");
    s->disk_free_bytes = free_bytes; /* of one disk, mostly: each shard says the same */
    s->up_ms = up_ms > s->up_ms ? up_ms : s->up_ms;
    *stale_sum += dp_status_view_counter(r, "staleness_sum");
    *stale_pushes += dp_status_view_counter(r, "staleness_pushes");
}

static void set_rates(struct dp_status_server *s, const struct dp_status_server *before, uint64_t passed_ms)
{
    /* A server that was started again counts anew. */
    bool since = before && before->state == DP_STATUS_SERVING && passed_ms > 0 && s->up_ms >= before->up_ms &&
                 s->rows_pulled >= before->rows_pulled && s->rows_pushed >= before->rows_pushed;
    double seconds = (double)(since ? passed_ms : s->up_ms) / 1000;
    if (!(seconds > 0))
        return;
    s->pulled_per_s = (double)(s->rows_pulled - (since ? before->rows_pulled : 0)) / seconds;
    s->pushed_per_s = (double)(s->rows_pushed - (since ? before->rows_pushed : 0)) / seconds;
}

static void gather_server(const struct dp_cluster *cluster, const struct dp_queries *asks, uint32_t first,
                          struct dp_status_server *s)
{
    uint64_t stale_sum = 0, stale_pushes = 0;
    for (uint32_t k = 0; k < s->shards; k++) {
        const struct dp_ask *ask = &asks->shard[first + k];
        enum dp_status_state state = ask->state == DP_ASK_ANSWERED  ? DP_STATUS_SERVING
                                     : ask->state == DP_ASK_REFUSED ? DP_STATUS_NOT_SERVING
                                                                    : DP_STATUS_DOWN;
        if (state == DP_STATUS_SERVING)
            add_shard(s, &ask->report, &stale_sum, &stale_pushes);
        if (state <= s->state)
            continue;
        s->state = state;
        dp_cluster_shard_endpoint(cluster, first + k, s->endpoint, sizeof s->endpoint);
        if (!s->endpoint[0]) {
            dp_cluster_control_endpoint(cluster, 0, s->endpoint, sizeof s->endpoint);
            (void)snprintf(s->why, sizeof s->why, "no address: the first server, at %.200s (of %s), %s",
                           s->endpoint, cluster->first.from,
                           asks->notes_known ? "has none for it" : "does not answer");
        } else if (state == DP_STATUS_DOWN)
            (void)snprintf(s->why, sizeof s->why, "no answer in %.1f s from %.200s%s%.200s",
                           asks->tried_ms / 1000.0, s->endpoint, ask->reason[0] ? ": " : "", ask->reason);
        else
            (void)snprintf(s->why, sizeof s->why, "%s", ask->reason);
    }
    s->staleness = stale_pushes ? (double)stale_sum / (double)stale_pushes : (double)NAN;
}

/* One that works puts a note twice a second, but for one that reads its data. */
static double silence_of(uint64_t age_ms, const char *state)
{
    static const char *const quiet[] = {"reading", "done", "failed", "stopped"};
    bool works = state != NULL;
    for (size_t i = 0; works && i < sizeof quiet / sizeof quiet[0]; i++)
        works = strcmp(state, quiet[i]) != 0;
    double s = works ? (double)age_ms / 1e3 : 0;
    return s > SILENT_S ? s : 0;
}

/* False: what cannot be read counts as none. */
static bool gather_worker(const struct dp_queries_note *note, struct dp_status_worker *w)
{
    json_t *root = json_loadb(note->text, note->bytes, 0, NULL);
    const char *state = json_string_value(json_object_get(root, "state"));
    const char *awaited = json_string_value(json_object_get(root, "awaited"));
    const char *slash = strrchr(note->name, '/');
    *w = (struct dp_status_worker){
        .epoch = dp_json_get_u64(root, "first_epoch") + dp_json_get_u64(root, "epoch"),
        .epochs = dp_json_get_u64(root, "first_epoch") + dp_json_get_u64(root, "epochs"),
        .examples = dp_json_get_u64(root, "examples"),
        .examples_total = dp_json_get_u64(root, "examples_total"),
        .examples_per_s = dp_json_get_real(root, "examples_per_s"),
        .dropped = dp_json_get_u64(root, "dropped"),
        .loss = dp_json_get_real(root, "loss"),
        .staleness = dp_json_get_real(root, "staleness_mean"),
        .silent_s = silence_of(note->age_ms, state)};
    (void)snprintf(w->name, sizeof w->name, "%.31s", slash ? slash + 1 : note->name);
    w->name[strcspn(w->name, ".")] = '\0'; /* it ends the number */
    (void)snprintf(w->state, sizeof w->state, "%.23s", state ? state : "");
    (void)snprintf(w->awaited, sizeof w->awaited, "%.255s", awaited ? awaited : "");
    dp_text_clean(w->state); /* a note is anybody's text */
    dp_text_clean(w->awaited);
    json_decref(root);
    return state != NULL;
}

static int by_number(const void *a, const void *b)
{
    unsigned long x = strtoul(((const struct dp_status_worker *)a)->name, NULL, 10),
                  y = strtoul(((const struct dp_status_worker *)b)->name, NULL, 10);
    return (x > y) - (x < y);
}

enum dp_status dp_status_view_gather(const struct dp_cluster *cluster, const struct dp_queries *asks,
                                     uint64_t at_ms, const struct dp_status_view *earlier,
                                     struct dp_status_view *out, struct dp_error *err)
{
    uint32_t first = 0;
    *out = (struct dp_status_view){.at_ms = at_ms,
                                   .cluster = cluster->id,
                                   .tried_ms = asks->tried_ms,
                                   .workers_known = asks->notes_known,
                                   .server = calloc(cluster->server_count + 1u, sizeof *out->server),
                                   .worker = calloc(asks->notes + 1u, sizeof *out->worker)};
    if (!out->server || !out->worker)
        return dp_fail(err, DP_NOMEM, "no memory for a status of %" PRIu32 " servers", cluster->server_count);
    out->servers = cluster->server_count;
    for (uint32_t i = 0; i < out->servers; i++) {
        struct dp_status_server *s = &out->server[i];
        bool comparable = earlier && earlier->servers == out->servers;
        s->shards = cluster->server[i].shards;
        gather_server(cluster, asks, first, s);
        set_rates(s, comparable ? &earlier->server[i] : NULL, comparable ? at_ms - earlier->at_ms : 0);
        first += s->shards;
    }
    for (uint32_t i = 0; i < asks->notes; i++)
        out->workers += gather_worker(&asks->note[i], &out->worker[out->workers]);
    dp_status_measures_gather(asks, earlier ? &earlier->measures : NULL, &out->measures);
    qsort(out->worker, out->workers, sizeof *out->worker, by_number);
    return DP_OK;
}

void dp_status_view_clear(struct dp_status_view *view)
{
    free(view->server);
    free(view->worker);
    *view = (struct dp_status_view){0};
}

bool dp_status_view_all_serve(const struct dp_status_view *view)
{
    for (uint32_t i = 0; i < view->servers; i++)
        if (view->server[i].state != DP_STATUS_SERVING)
            return false;
    return true;
}

/* ---- text */

/* "1.23 M": 4 figures at most, so that columns stay narrow. */
static const char *short_number(double value, double step, const char *unit, char out[24])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t at = 0;
    if (!isfinite(value)) {
        (void)snprintf(out, 24, "-");
        return out;
    }
    for (; value >= 0.9995 * step && at + 1 < sizeof prefixes / sizeof prefixes[0]; at++)
        value /= step;
    int digits = at == 0 && value == floor(value) ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    (void)snprintf(out, 24, "%.*f%s%s%s", digits, value, at || *unit ? " " : "", prefixes[at], unit);
    return out;
}

/* A long text, cut between words into lines that are indented as the state is. */
static void print_why(const char *text, size_t first, FILE *to)
{
    size_t room = DP_STATUS_COLUMNS - first, left = strlen(text);
    while (left > room) {
        size_t at = room;
        while (at > room / 2 && text[at] != ' ')
            at--;
        fprintf(to, "%.*s\n%*s", (int)at, text, INDENT, "");
        text += at + (text[at] == ' ');
        left = strlen(text);
        room = DP_STATUS_COLUMNS - INDENT;
    }
    fprintf(to, "%s\n", text);
}

static void print_server(const struct dp_status_server *s, uint32_t number, FILE *to)
{
    char rows[24], pulled[24], pushed[24], stale[24], journal[24], disk[24], left[24];
    if (s->state != DP_STATUS_SERVING) {
        int n = fprintf(to, "%6" PRIu32 "  %s: ", number, state_names[s->state]);
        print_why(s->why, n > 0 ? (size_t)n : 0, to);
        return;
    }
    fprintf(to, "%6" PRIu32 "  %-7s %6" PRIu32 " %7s %8s %8s %6s %7s %7s %7s\n", number,
            state_names[s->state], s->tables, short_number((double)s->rows, 1000, "", rows),
            short_number(s->pulled_per_s, 1000, "", pulled), short_number(s->pushed_per_s, 1000, "", pushed),
            short_number(s->staleness, 1000, "", stale),
            short_number((double)s->journal_bytes, 1000, "B", journal),
            short_number((double)s->disk_bytes, 1000, "B", disk),
            short_number((double)s->disk_free_bytes, 1000, "B", left));
    if (s->pulls_held > 0)
        fprintf(to, "%*s%" PRIu64 " pulls are blocked until other workers have come as far\n", INDENT, "",
                s->pulls_held);
}

static void print_worker(const struct dp_status_worker *w, FILE *to)
{
    char epoch[48], rate[24], loss[24] = "-", left[32] = "-", stale[24];
    double share = w->examples_total ? 100.0 * (double)w->examples / (double)w->examples_total : 0;
    bool silent = w->silent_s > 0;
    bool trains = strcmp(w->state, "training") == 0 && w->examples_per_s > 0 && !w->awaited[0] && !silent;
    double seconds = trains && w->examples_total > w->examples
                         ? (double)(w->examples_total - w->examples) / w->examples_per_s
                         : 0;
    (void)snprintf(epoch, sizeof epoch, "%" PRIu64 "/%" PRIu64, w->epoch, w->epochs);
    if (isfinite(w->loss))
        (void)snprintf(loss, sizeof loss, "%.5g", w->loss);
    if (seconds > 0 && seconds < 1e9) {
        unsigned long n = (unsigned long)ceil(seconds);
        (void)snprintf(left, sizeof left, "%lu:%02lu:%02lu", n / 3600, n / 60 % 60, n % 60);
    }
    fprintf(to, "%6.6s  %-10.10s %9.16s %4.0f%% %9s %10s %6s %10s\n", w->name,
            silent          ? "silent"
            : w->awaited[0] ? "waiting"
                            : w->state,
            epoch, share > 100 ? 100 : floor(share), left,
            trains ? short_number(w->examples_per_s, 1000, "", rate) : "-",
            short_number(w->staleness, 1000, "", stale), loss);
    if (silent)
        fprintf(to, "%*slast heard %.0f s ago: %s\n", INDENT, "", w->silent_s,
                w->awaited[0] ? "waiting" : w->state);
    else if (w->awaited[0])
        print_why(w->awaited, (size_t)fprintf(to, "%*s", INDENT, ""), to);
    if (w->dropped > 0)
        fprintf(to, "%*s%" PRIu64 " of its examples came too late for their step and were dropped\n", INDENT,
                "", w->dropped);
}

void dp_status_view_print(const struct dp_status_view *view, FILE *to)
{
    fprintf(to, "%6s  %-7s %6s %7s %8s %8s %6s %7s %7s %7s\n", "server", "state", "tables", "rows",
            "pulled/s", "pushed/s", "stale", "journal", "on disk", "free");
    for (uint32_t i = 0; i < view->servers; i++)
        print_server(&view->server[i], i, to);
    dp_status_measures_print(&view->measures, to);
    if (view->workers > 0)
        fprintf(to, "%6s  %-10s %9s %5s %9s %10s %6s %10s\n", "worker", "state", "epoch", "done", "left",
                "examples/s", "stale", "loss");
    for (uint32_t i = 0; i < view->workers; i++)
        print_worker(&view->worker[i], to);
    if (view->workers == 0)
        fprintf(to, "%s\n",
                view->workers_known
                    ? "No worker of this run has reported since server 0 was started."
                    : "Workers: unknown, because server 0, which keeps their reports, does not answer.");
}

/* ---- JSON */

static json_t *shards_of(const struct dp_queries *asks, uint32_t first, uint32_t count)
{
    json_t *shards = json_array();
    for (uint32_t k = first; k < first + count; k++) {
        const struct dp_status_report *r = &asks->shard[k].report;
        json_t *tables = json_array(), *counters = json_object();
        for (uint32_t i = 0; i < r->tables; i++)
            (void)json_array_append_new(
                tables, json_pack("{s:s, s:o, s:o, s:o}", "name", r->table[i].spec.name, "width",
                                  dp_json_u64(r->table[i].spec.dim), "rows", dp_json_u64(r->table[i].rows),
                                  "bytes", dp_json_u64(r->table[i].bytes)));
        for (uint32_t i = 0; i < r->counters; i++)
            (void)json_object_set_new(counters, r->counter[i].name, dp_json_u64(r->counter[i].value));
        char store[24] = "";
        if (r->store != 0)
            (void)snprintf(store, sizeof store, "0x%016" PRIx64, r->store);
        (void)json_array_append_new(shards,
                                    json_pack("{s:o, s:s, s:o, s:o, s:o}", "shard", dp_json_u64(k), "store",
                                              store, "tables", tables, "counters", counters, "histograms",
                                              dp_status_measures_list(r->histogram, r->histograms)));
    }
    return shards;
}

static json_t *server_of(const struct dp_status_server *s, uint32_t number)
{
    json_t *o = json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "server", dp_json_u64(number), "state",
                          state_names[s->state], "why", s->why, "shards", dp_json_u64(s->shards), "tables",
                          dp_json_u64(s->tables), "rows", dp_json_u64(s->rows), "rows_pulled",
                          dp_json_u64(s->rows_pulled), "rows_pushed", dp_json_u64(s->rows_pushed));
    json_t *more = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rows_pulled_per_s",
                             dp_json_real(s->pulled_per_s), "rows_pushed_per_s",
                             dp_json_real(s->pushed_per_s), "staleness", dp_json_real(s->staleness),
                             "journal_bytes", dp_json_u64(s->journal_bytes), "disk_bytes",
                             dp_json_u64(s->disk_bytes), "disk_free_bytes", dp_json_u64(s->disk_free_bytes),
                             "pulls_held", dp_json_u64(s->pulls_held), "up_ms", dp_json_u64(s->up_ms));
    if (o && more)
        (void)json_object_update(o, more);
    json_decref(more);
    return o;
}

static json_t *worker_of(const struct dp_status_worker *w)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "worker", w->name,
                     "state", w->state, "awaited", w->awaited, "epoch", dp_json_u64(w->epoch), "epochs",
                     dp_json_u64(w->epochs), "examples", dp_json_u64(w->examples), "examples_total",
                     dp_json_u64(w->examples_total), "dropped", dp_json_u64(w->dropped), "examples_per_s",
                     dp_json_real(w->examples_per_s), "staleness", dp_json_real(w->staleness), "loss",
                     dp_json_real(w->loss), "silent_s", dp_json_real(w->silent_s));
}

char *dp_status_view_json(const struct dp_status_view *view, const struct dp_queries *asks)
{
    json_t *servers = json_array(), *workers = json_array();
    uint32_t first = 0;
    for (uint32_t i = 0; i < view->servers; i++) {
        json_t *server = server_of(&view->server[i], i);
        if (asks && server)
            (void)json_object_set_new(server, "each", shards_of(asks, first, view->server[i].shards));
        first += view->server[i].shards;
        (void)json_array_append_new(servers, server);
    }
    for (uint32_t i = 0; i < view->workers; i++)
        (void)json_array_append_new(workers, worker_of(&view->worker[i]));
    char id[24];
    (void)snprintf(id, sizeof id, "0x%016" PRIx64, view->cluster);
    json_t *root = json_pack("{s:s, s:b, s:o, s:b, s:o, s:o}", "cluster", id, "all_serve",
                             (int)dp_status_view_all_serve(view), "servers", servers, "workers_known",
                             (int)view->workers_known, "workers", workers, "histograms",
                             dp_status_measures_json(&view->measures));
    if (view->ended.known) {
        (void)json_object_set_new(root, "run", json_integer(view->ended.run));
        (void)json_object_set_new(root, "finished", json_boolean(view->ended.finished));
    }
    char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(root);
    return text;
}
