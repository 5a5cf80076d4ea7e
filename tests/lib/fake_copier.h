/* Fake copier: copier.h without files. Jobs wait until the test ends them, in any order.
 *     new -> dp_fake_copier_seam -> submit ... -> dp_fake_copier_end(at) -> completed -> free
 * Thread    One.
 * Memory    Jobs that were not given by completed() when it is freed are freed with it. */
#ifndef DP_TESTS_LIB_FAKE_COPIER_H
#define DP_TESTS_LIB_FAKE_COPIER_H

#include "server/checkpoint/copier.h"

struct dp_fake_copier;

struct dp_fake_copier *dp_fake_copier_new(void);
void dp_fake_copier_free(struct dp_fake_copier **fake); /* accepts NULL inside, leaves NULL */
struct dp_copier dp_fake_copier_seam(struct dp_fake_copier *fake);

/* Jobs that were submitted and not ended yet, in order of submission. */
uint32_t dp_fake_copier_waiting(const struct dp_fake_copier *fake);
struct dp_copy_job *dp_fake_copier_job(const struct dp_fake_copier *fake, uint32_t at);
/* Ends it: DP_OK with the manifest {"shard": N}, else with this status and its text. A cancelled job ends with STOPPING
 * whatever is said. */
void dp_fake_copier_end(struct dp_fake_copier *fake, uint32_t at, enum dp_status status);
/* From now on a job ends when it is submitted. */
void dp_fake_copier_at_once(struct dp_fake_copier *fake, bool at_once);
uint32_t dp_fake_copier_submitted(const struct dp_fake_copier *fake); /* since new */

#endif
