/* Files: a temporary folder with small files in it, plain or compressed. For tests; fails by CMocka's fail. */
#ifndef DP_TESTS_UNIT_WORKER_READ_FILES_H
#define DP_TESTS_UNIT_WORKER_READ_FILES_H

#include <stddef.h>
#include <stdint.h>

enum packing { PACK_PLAIN, PACK_GZIP, PACK_ZSTD, PACK_XZ, PACK_BZIP2, PACK_ZIP, PACKINGS };

extern char files_dir[128];
int files_open(void **state);
int files_close(void **state);
/* Releases it when the test ends, or before that. */
void files_keep(void (*release)(void *what), void *what);
void files_release(void *what);
/* A test with a folder of its own, which goes with all that is in it. */
#define FILES_TEST(test) cmocka_unit_test_setup_teardown(test, files_open, files_close)
void remove_folder(const char *path); /* if it is there */

/* bytes as one gzip member, zstd frame (with checksum), xz or bzip2 stream, or file of a zip; for free(). */
void *pack(enum packing packing, const void *bytes, size_t len, size_t *packed_len);
/* Writes files_dir/name and gives its path (until the test ends). */
const char *write_file(const char *name, const void *bytes, size_t len);
const char *write_packed(const char *name, enum packing packing, const void *bytes, size_t len);
const char *write_text(const char *name, const char *text);
/* An idx3 file of count images with pixels of a fixed rule ((image * 7 + pixel * 3) % 256), and its labels
 * (image % classes); for free(). */
uint8_t *make_images(uint32_t count, uint32_t rows, uint32_t columns, size_t *len);
uint8_t *make_labels(uint32_t count, uint32_t classes, size_t *len);

#endif
