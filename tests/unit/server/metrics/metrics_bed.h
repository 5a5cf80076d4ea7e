/* Metrics bed: the metrics thread on a free port of loopback, over shards, control and notes that a test
 * sets, and a plain HTTP client. */
#ifndef DP_TESTS_UNIT_SERVER_METRICS_METRICS_BED_H
#define DP_TESTS_UNIT_SERVER_METRICS_METRICS_BED_H

#include "server/metrics/exporter.h"
#include "tests/lib/test.h"

#define BED_SHARDS 3u

struct bed {
    struct dp_exporter_shard
        shard[BED_SHARDS]; /* since_s 0: it does not serve. Changed while no request is under way */
    uint64_t control_idle_ms;
    struct dp_board_note note[16];
    uint64_t note_age_ns;
    uint32_t notes;
    struct dp_exporter *metrics;
    struct dp_metrics_address address;
};

/* Shards 4 and 6 serve and have counted 1,000 of everything, shard 5 replays its journal. */
void bed_start(struct bed *bed);
void bed_stop(struct bed *bed);
void bed_note(struct bed *bed, const char *name, const char *text);
int bed_connect(const struct bed *bed);
/* Sends the bytes, and reads all that comes until the end, 10 s at most. Heap memory. Returns the status; 0:
 * there was no answer. */
int bed_send(const struct bed *bed, const char *bytes, size_t size, char **answer);
/* GET path; the body in *body, heap memory. Waits first until no earlier answer is served again. */
int bed_get(const struct bed *bed, const char *path, char **body);

#endif
