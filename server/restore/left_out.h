/* Left out: tables of a checkpoint that a restore does not build: it is how a table is removed.
 *     manifest read -> leave_out -> history, tables (restore.h) ...
 * Why       A restore draws a history, so a client that knew the table is refused. Journals begin after the
 *           checkpoint's pushes, which recovery has applied: none of their records names the table. A table
 *           of
 *           that name that is made later is new on all servers. To remove one from servers that serve, every
 *           request, record and mark would need the table's incarnation.
 * Holds     The history is derived from the list, too. So servers with other lists do not serve together.
 * Thread    Any. */
#ifndef DP_RESTORE_LEFT_OUT_H
#define DP_RESTORE_LEFT_OUT_H

#include "server/checkpoint/manifest_data.h"

/* names: TABLE[,TABLE...], in any order. DP_ARGUMENT: the checkpoint lacks one; the text has those that it
 * has. */
enum dp_status dp_restore_leave_out(struct dp_manifest *manifest, const char *names, struct dp_error *err);
/* " without 2 of 5 tables"; "": none is left out. */
const char *dp_restore_left_out_text(const struct dp_manifest *manifest, char text[64]);

#endif
