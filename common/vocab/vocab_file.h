/* Shared by writing and reading a file of names. Private to this room. */
#ifndef DP_VOCAB_VOCAB_FILE_H
#define DP_VOCAB_VOCAB_FILE_H

#include "common/vocab/vocab.h"

#define DP_VOCAB_TITLE    "downpour names 1"
#define DP_VOCAB_HEAD_MAX 96

/* The last line. */
void dp_vocab_end(char line[DP_VOCAB_HEAD_MAX], uint64_t names, bool cut, uint64_t sum);

#endif
