/* Fake store: store.h in memory, which completes jobs when and in what order a test wants.
 *     new -> open(&store) -> jobs, releases, failures -> store.close -> open again ... -> free
 * Promise   As store.h. Not held: a job completes within submit. Held: jobs wait in the order of submission
 *           until they are released, one by one; a read may overtake, a write or marks job may not overtake
 *           an earlier write or marks job (asserted). wait() releases the oldest when none is completed. What
 *           was completed outlives store.close, until free.
 * Thread    All functions: one.
 * Memory    Rows and marks are copied. Running out of memory ends the test.
 * Failure   Injected with dp_fake_store_fail; a row of another length than its reader's is CORRUPT. After a
 *           write or marks job failed, all later ones fail with its status, as in a real store, until the
 *           store is closed; but FULL fails that one only. */
#ifndef DP_TESTS_LIB_FAKE_STORE_H
#define DP_TESTS_LIB_FAKE_STORE_H

#include "server/store/store.h"

struct dp_fake_store;

/* jobs_max: jobs under way (not yet given by completed()) at once, then submit says AGAIN. */
struct dp_fake_store *dp_fake_store_new(uint32_t jobs_max);
void dp_fake_store_free(struct dp_fake_store **fake); /* accepts NULL inside, leaves NULL */
/* One store at a time: close it before the next. */
struct dp_store dp_fake_store_open(struct dp_fake_store *fake);

/* From now on jobs are held. false releases all that are, and holds no more. */
void dp_fake_store_hold(struct dp_fake_store *fake, bool hold);
/* What figures say waits to be merged. */
void dp_fake_store_l0_files(struct dp_fake_store *fake, uint64_t files);
/* Held reads give what was there when they were submitted (true: the oldest that store.h allows) or when they
 * are released (false, as it starts out). */
void dp_fake_store_read_at_submit(struct dp_fake_store *fake, bool at_submit);
/* The jobs that are held, in order of submission; 0 is the oldest. */
uint32_t dp_fake_store_held(const struct dp_fake_store *fake);
const struct dp_store_job *dp_fake_store_held_job(const struct dp_fake_store *fake, uint32_t at);
void dp_fake_store_release(struct dp_fake_store *fake, uint32_t at);
/* In order of submission. */
void dp_fake_store_release_all(struct dp_fake_store *fake);

/* The nth job of this kind to be executed from now (1: the next) fails with `why`, and changes nothing. One
 * failure per kind waits at a time. */
void dp_fake_store_fail(struct dp_fake_store *fake, enum dp_store_job_kind kind, uint32_t nth,
                        enum dp_status why);

/* Jobs of this kind that were taken by submit, since new; rows in all of them. */
uint64_t dp_fake_store_jobs(const struct dp_fake_store *fake, enum dp_store_job_kind kind);
uint64_t dp_fake_store_items(const struct dp_fake_store *fake, enum dp_store_job_kind kind);

/* What is stored. NULL: nothing. The pointer holds until the next change. */
size_t dp_fake_store_rows(const struct dp_fake_store *fake);
const void *dp_fake_store_row(const struct dp_fake_store *fake, struct dp_store_key key, size_t *bytes);
const void *dp_fake_store_mark(const struct dp_fake_store *fake, const void *key, size_t key_bytes,
                               size_t *bytes);
/* Links that are there; a row, a mark of one. */
uint32_t dp_fake_store_links(const struct dp_fake_store *fake);
bool dp_fake_store_has_link(const struct dp_fake_store *fake, const char *name);
/* Puts past all jobs: stored state to start from, or stored damage. */
void dp_fake_store_put_row(struct dp_fake_store *fake, struct dp_store_key key, const void *row,
                           size_t bytes);
void dp_fake_store_put_mark(struct dp_fake_store *fake, const struct dp_store_mark *mark);

#endif
