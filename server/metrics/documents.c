#include "server/metrics/documents.h"

#include "server/metrics/series.h"
#include "server/metrics/shard_series.h"
#include "server/metrics/worker_series.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A text that grows as it is written. */
FILE *dp_document_begin(struct dp_document *answer)
{
    *answer = (struct dp_document){.status = 200};
    return open_memstream(&answer->body, &answer->size);
}

void dp_document_end(struct dp_document *answer, FILE *text)
{
    bool whole = text && !ferror(text);
    if (text && fclose(text) == 0 && whole)
        return;
    free(answer->body);
    *answer = (struct dp_document){.status = 503};
}

struct dp_exporter_shard *dp_document_shards(const struct dp_exporter_source *source)
{
    struct dp_exporter_shard *shard = calloc(source->shards, sizeof *shard);
    for (uint32_t i = 0; shard && i < source->shards; i++)
        source->shard(source->context, i, &shard[i]);
    return shard;
}

/* Names that every exporter has, which dashboards of others know. */
static void put_process(FILE *to, const struct dp_exporter_source *source)
{
    struct timespec used;
    unsigned long pages[2] = {0, 0};
    FILE *memory = fopen("/proc/self/statm", "re");
    dp_series_family(to, "process_start_time_seconds", "gauge", "when the server was started, since 1970");
    dp_series_u64(to, "process_start_time_seconds", "", NULL, source->started_s);
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) {
        dp_series_family(to, "process_cpu_seconds_total", "counter", "processor time of the server");
        dp_series_real(to, "process_cpu_seconds_total", "", NULL,
                       (double)used.tv_sec + (double)used.tv_nsec / 1e9);
    }
    if (memory && fscanf(memory, "%lu %lu", &pages[0], &pages[1]) == 2) {
        dp_series_family(to, "process_resident_memory_bytes", "gauge", "memory of the server");
        dp_series_u64(to, "process_resident_memory_bytes", "", NULL,
                      (uint64_t)pages[1] * (uint64_t)sysconf(_SC_PAGESIZE));
    }
    if (memory)
        (void)fclose(memory);
}

static void put_server(FILE *to, const struct dp_exporter_source *source,
                       const struct dp_exporter_shard *shard)
{
    static const char info[] = "downpour_server_info", ready[] = "downpour_server_ready";
    char number[12];
    uint32_t serving = 0;
    (void)snprintf(number, sizeof number, "%" PRIu32, source->server);
    const struct dp_label labels[] = {
        {"cluster", source->cluster}, {"server", number}, {"version", DOWNPOUR_VERSION}, {NULL, NULL}};
    for (uint32_t i = 0; i < source->shards; i++)
        serving += shard[i].since_s > 0;
    dp_series_family(to, info, "gauge", "1, with the server's cluster, number and version as labels");
    dp_series_u64(to, info, "", labels, 1);
    dp_series_family(to, ready, "gauge", "1: all shards of the server serve");
    dp_series_u64(to, ready, "", NULL, serving == source->shards);
}

struct dp_document dp_document_metrics(const struct dp_exporter_source *source)
{
    struct dp_document answer;
    struct dp_exporter_notes notes = {0};
    struct dp_exporter_shard *shard = dp_document_shards(source);
    FILE *text = shard ? dp_document_begin(&answer) : NULL;
    if (!text) {
        free(shard);
        return (struct dp_document){.status = 503};
    }
    put_server(text, source, shard);
    put_process(text, source);
    dp_exporter_shards(text, source, shard);
    dp_exporter_notes_read(source, &notes);
    dp_exporter_workers(text, &notes);
    dp_exporter_notes_clear(&notes);
    dp_document_end(&answer, text);
    free(shard);
    return answer;
}

struct dp_document dp_document_health(const struct dp_exporter_source *source)
{
    struct dp_document answer;
    uint64_t idle_ms = source->control_idle_ms(source->context);
    FILE *text = dp_document_begin(&answer);
    bool well = idle_ms <= DP_CONTROL_IDLE_MAX_MS;
    if (text && well)
        (void)fputs("ok\n", text);
    else if (text)
        (void)fprintf(text, "the control thread of server %" PRIu32 " has not answered for %" PRIu64 " s\n",
                      source->server, idle_ms / 1000);
    dp_document_end(&answer, text);
    answer.status = well ? answer.status : 503;
    return answer;
}

struct dp_document dp_document_ready(const struct dp_exporter_source *source)
{
    struct dp_document answer;
    struct dp_exporter_shard *shard = dp_document_shards(source);
    FILE *text = shard ? dp_document_begin(&answer) : NULL;
    unsigned status = 200;
    for (uint32_t i = 0; text && i < source->shards; i++)
        if (shard[i].since_s == 0) {
            (void)fprintf(text, "%s\n", shard[i].why.text);
            status = 503;
        }
    if (text && status == 200)
        (void)fputs("ready\n", text);
    free(shard);
    if (!text)
        return (struct dp_document){.status = 503};
    dp_document_end(&answer, text);
    answer.status = answer.body ? status : 503;
    return answer;
}
