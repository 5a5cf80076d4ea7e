#include "server/restore/restore_register.h"

#include "common/env/read_only_disk.h"
#include "server/control/register_file.h"
#include "server/identity.h"

#include <stdlib.h>
#include <string.h>

static void drop_stores(struct dp_control_register_content *content)
{
    for (uint32_t i = 0; i < content->count; i++) {
        if (strcmp(content->item[i]->name, DP_STORES_NAME) != 0)
            continue;
        free(content->item[i]);
        content->count--;
        memmove(&content->item[i], &content->item[i + 1], (content->count - i) * sizeof content->item[0]);
        return;
    }
}

static enum dp_status write_to(const char *to, const struct dp_control_register_content *content,
                               struct dp_error *err)
{
    struct dp_disk disk;
    enum dp_status st = dp_disk_open(to, &disk, err);
    if (st != DP_OK)
        return st;
    st = dp_control_register_file_write(&disk, content, err);
    dp_disk_close(&disk);
    return st;
}

enum dp_status dp_restore_register(const char *from, const char *to, struct dp_error *err)
{
    struct dp_disk disk;
    struct dp_control_register_content content = {0};
    enum dp_status st = dp_read_only_disk_open(from, &disk, err);
    if (st != DP_OK)
        return st;
    st = dp_control_register_file_read(&disk, true, &content, err);
    dp_read_only_disk_close(&disk);
    if (st == DP_OK) {
        drop_stores(&content);
        dp_store_id_draw(&content.id);
        st = write_to(to, &content, err);
    }
    dp_control_register_content_clear(&content);
    return st == DP_OK ? st : dp_wrap(err, st, "the register in %s", from);
}
