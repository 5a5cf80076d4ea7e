/* Nearest: the known word that a mistyped one most likely meant.
 * Thread    Any; nothing is kept.                                                                     */
#ifndef DP_CONFIG_NEAREST_H
#define DP_CONFIG_NEAREST_H

#include <stddef.h>

/* The word of `words` with the fewest letters changed, left out, added or swapped, if these are at most a
 * third of the longer one's (at least 1), or if `word` is its beginning; else NULL. */
const char *dp_nearest(const char *word, const char *const *words, size_t count);

#endif
