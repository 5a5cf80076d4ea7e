/* Compare answer: the first paragraph of a comparison's page: which mode reached the target first, by how
 * much, at what cost at the end, at which rates; or that no difference is shown, and which would have been;
 * and the reservations (answer_caveats.h).
 * Promise   A statement about two modes is a claim that holds (claims.h) or is marked as not shown; then
 *           modes are named in the order in which they were given.
 * Memory    The text is malloc'd; "" if no mode has anything to say; NULL without memory. */
#ifndef DP_COMPARE_COMPARE_ANSWER_H
#define DP_COMPARE_COMPARE_ANSWER_H

#include <jansson.h>

char *dp_compare_answer(const json_t *root);

#endif
