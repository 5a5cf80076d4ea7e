/* Number: parses decimal numbers in a line of text that ends at a pointer, not at a terminator.
 * Promise   dp_number_f32 gives the f32 nearest to the decimal (ties to even), like strtof in the C locale.
 *           dp_number_f64 gives the f64, like strtod. The grammar is [+-] digits [. digits] [e [+-]
 *           digits]: no hexadecimal, no "nan", no "inf".
 * Thread    Pure.
 * Failure   Returns NULL when no number starts there, when it is longer than DP_NUMBER_LEN_MAX characters
 *           (if they matter), or not finite as f32. Otherwise returns the place after the number; the caller
 *           checks the next characters. */
#ifndef DP_READ_NUMBER_H
#define DP_READ_NUMBER_H

#include <stdint.h>

#define DP_NUMBER_LEN_MAX   127
#define DP_NUMBER_WHOLE_MAX 0x1p53 /* from there on an f64 may not have all digits of a whole number */

const char *dp_number_f32(const char *at, const char *end, float *out);
/* The same with the nearest f64. */
const char *dp_number_f64(const char *at, const char *end, double *out);
/* The place after a decimal of that grammar, whatever its length and range. */
const char *dp_number_end(const char *at, const char *end);
/* Digits only; below 2^63. */
const char *dp_number_index(const char *at, const char *end, uint64_t *out);

#endif
