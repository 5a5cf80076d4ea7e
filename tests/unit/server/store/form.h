/* Form: one store, real or fake, under the same tests, and batches of rows to put into it.
 * Every wait here ends after FORM_WAIT_MS with a failed test.                                            */
#ifndef DP_TESTS_UNIT_SERVER_STORE_FORM_H
#define DP_TESTS_UNIT_SERVER_STORE_FORM_H

#include "server/store/rocks_store.h"
#include "tests/lib/fake_store.h"

#include <pthread.h>

#define FORM_WAIT_MS 60000u

struct form {
    bool rocks, open;
    struct dp_store store;
    struct dp_fake_store *fake; /* NULL: rocks */
    char directory[256];        /* of rocks: made for this form, gone with it */
    struct dp_rocks_store_options options;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    uint64_t wakes;
};

struct form *form_new(bool rocks);
void form_free(struct form *form); /* closes what is open, not cleanly */
enum dp_status form_open(struct form *form, struct dp_error *err);
void form_close(struct form *form, bool clean);

void form_submit(struct form *form, struct dp_store_job *job);
struct dp_store_job *form_wait(struct form *form);
/* Submits, waits for it as the only one under way, gives its status. */
enum dp_status form_do(struct form *form, struct dp_store_job *job);

/* Rows of one length, keys 0 until set. */
struct batch {
    uint32_t count;
    struct dp_store_key *keys;
    void **rows;
    uint32_t *row_bytes;
    bool *found;
    unsigned char *bytes;
    struct dp_store_job job;
};
struct batch *batch_new(uint32_t count, uint32_t row_bytes);
void batch_free(struct batch *batch);
/* Row i is key (table, (from + i) * step), its bytes a function of key and version. */
void batch_fill(struct batch *batch, uint32_t table, uint64_t from, uint64_t step, uint32_t version);
struct dp_store_job *batch_job(struct batch *batch, enum dp_store_job_kind kind);
/* Asserts that all were found and hold what batch_fill gives for this version. */
void batch_expect(const struct batch *batch, uint32_t version);

struct dp_store_job marks_job(const struct dp_store_mark *marks, uint32_t count);
struct dp_store_mark mark_text(const char *key, const char *value);

/* An empty directory under $TMPDIR or /tmp. */
void temp_directory_make(char *path, size_t path_bytes);
void temp_directory_remove(const char *path);

#endif
