/* Run origin: how a run was started, kept in its directory as origin.json: command, directory in which it was given, program,
 * version and build (commit, type, compiler, libraries), time, machine. So a page, or a person, can say how it is made again.
 * Promise   A command with words that are not UTF-8, or longer than a path, is not kept.
 * Failure   A file that is damaged or missing makes things unknown; writing: DP_IO naming the path. */
#ifndef DP_RUN_RUN_PROVENANCE_H
#define DP_RUN_RUN_PROVENANCE_H

#include "deploy/run/folder.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* argv: what follows `downpour run`. */
enum dp_status dp_run_provenance_write(const struct dp_folder *folder, uint32_t run, int argc,
                                       char *const *argv, struct dp_error *err);
/* The same of any command, for the caller to keep: {"version", "build", "machine", "program", "began", "command", "directory"}, the
 * caller's. argv: what follows `downpour WORD`. */
json_t *dp_origin_of_command(const char *word, int argc, char *const *argv);
/* The name of this machine's processor; false: not known. */
bool dp_run_processor(char *name, size_t size);
/* The caller's; NULL: there is none that is of this run. */
json_t *dp_run_provenance_read(const struct dp_folder *folder, uint32_t run);
/* The command that makes it again, in the directory DIR-again, for a shell: it runs as it stands, in any directory. malloc'd; NULL: the
 * origin has no command, or a path would be too long. dir: absolute. */
char *dp_origin_again(const json_t *origin, const char *dir);
/* How many words this flag takes if it says in which directory a command works, and what happens to that directory's files: "--dir"
 * and its value 2, "--resume" 1; of other flags 0. */
size_t dp_origin_words_of_directory(const char *word);

#endif
