/* Place: what one system test works in: a directory of its own, cluster files, the build's programs started
 * from them, and the results they leave. Everything is ended and removed at close, also when the test failed.
 * Thread    The test's own: the checks here are CMocka's.
 * Memory    Paths and texts that are returned live until the place is closed.                            */
#ifndef DP_TESTS_SYSTEM_PLACE_H
#define DP_TESTS_SYSTEM_PLACE_H

#include "tests/lib/process.h"

#include "common/base/status.h"

#include <stddef.h>

#define DP_DIGITS_TRAIN DP_SOURCE "/tests/data/digits.train.libsvm.gz"
#define DP_DIGITS_TEST  DP_SOURCE "/tests/data/digits.test.libsvm.gz"
/* For servers to start, and for short trainings to end, on loaded machines. */
#define DP_SOON_MS 30000u

struct dp_place;

/* For cmocka_unit_test_setup_teardown: *state is the place. */
int dp_place_setup(void **state);
int dp_place_teardown(void **state);

const char *dp_place_path(struct dp_place *place, const char *format, ...) DP_PRINTF(2, 3);
const char *dp_place_text(struct dp_place *place, const char *format, ...) DP_PRINTF(2, 3);
/* Writes size bytes; returns the path of `name` in the place. */
const char *dp_place_file(struct dp_place *place, const char *name, const void *bytes, size_t size);
/* The file, which must be there; .gz is unpacked. size may be NULL. */
char *dp_place_read(struct dp_place *place, const char *path, size_t *size);

/* Starts a program of the build ("downpour", "downpour-server", ...) or, with a / or outside of it, any
 * other; words up to a NULL. */
struct dp_process *dp_place_start(struct dp_place *place, const char *program, ...) __attribute__((sentinel));
/* Ends a program before the place does, and frees it: for tests that start a great many. */
void dp_place_drop(struct dp_place *place, struct dp_process **process);
/* Waits for its end, wants this code and nobody left of its session; says what it wrote if not. */
void dp_place_ended(struct dp_process *process, int code);
/* Start and ended in one, then both of its outputs hold each text of the NULL-ended list. */
#define dp_place_try(place, code, ...)                                                                       \
    dp_place_ended_in((place), (code), dp_place_start((place), __VA_ARGS__, NULL))
struct dp_process *dp_place_ended_in(struct dp_place *place, int code, struct dp_process *process);
/* Fails, with all that it wrote, unless standard output or error holds the text. */
void dp_place_says(struct dp_process *process, const char *text);
void dp_place_awaits(struct dp_process *process, const char *text);
/* The same of a file that the program writes, there or not yet. */
void dp_place_awaits_file(struct dp_place *place, const char *path, const char *text);
/* A process of the program's session whose command line holds the text. */
pid_t dp_place_child(const struct dp_process *run, const char *text);
void dp_place_kill_child(const struct dp_process *run, const char *text);

/* A free control port with `count - 1` free ones behind it. */
uint32_t dp_place_ports(uint32_t count);

/* A cluster file's settings; what is 0 or NULL takes the value behind it. */
struct dp_place_cluster {
    const char *file;         /* name of the cluster file and of stores: "c" */
    const char *model;        /* "mlp:64-64-10" */
    const char *train, *test; /* the digits, scaled by 1/16 */
    uint32_t servers, shards; /* 1, 1 */
    uint32_t workers;         /* 1 */
    uint32_t epochs, batch;   /* 2, 16 */
    uint32_t run;             /* 1 */
    uint32_t timeout_ms;      /* 30,000 */
    uint32_t port;            /* 0: chosen here */
    const char *rate;         /* "0.005" */
    const char *training;     /* more lines of that section; "" */
    const char *data;         /* more lines; "scale = 0.0625;" */
    const char *top;          /* more lines in front; "" */
};
/* Writes FILE.conf, with reports to FILE.json and stores in FILE-0, FILE-1, ...; fills in the defaults. Its
 * path. */
const char *dp_place_conf(struct dp_place *place, struct dp_place_cluster *cluster);
/* Starts server N of a cluster file, which may be a new cluster's, and waits until it is ready. */
struct dp_process *dp_place_server(struct dp_place *place, const char *conf, uint32_t server);
struct dp_process *dp_place_worker(struct dp_place *place, const char *conf, uint32_t worker);
/* SIGTERM, exit 0, "closed cleanly". */
void dp_place_stops_cleanly(struct dp_process *server);

/* A number in a JSON file: "epochs.0.test.accuracy"; fails the test where there is none. */
double dp_place_number(struct dp_place *place, const char *json, const char *where);
/* What `downpour inspect --verify --digest` says of the rows of stores (up to two): "digest ... of all N rows", each
 * table's before it. Every checksum is right, and every row was written back. */
const char *dp_place_digest(struct dp_place *place, const char *store, const char *other);
/* The same of a run's directory, of one or two servers. */
const char *dp_place_run_digest(struct dp_place *place, const char *dir);
/* Sum over all shards of a counter, as `downpour status` tells it. */
double dp_place_counter(struct dp_place *place, const char *conf, const char *counter);

#endif
