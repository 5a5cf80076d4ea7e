#include "deploy/run/epoch_choice.h"

#include <math.h>

bool dp_epoch_chosen(size_t i, size_t count, size_t most)
{
    if (count <= most || i == 0)
        return i < count;
    /* Shown are k * (count - 1) / steps; this is the first k that is not below i. */
    size_t steps = most - 2, k = (i * steps + count - 2) / (count - 1);
    return k * (count - 1) / steps == i;
}

double dp_epoch_loss(const json_t *epoch)
{
    const json_t *set = json_object_get(epoch, "validation");
    if (!set)
        set = json_object_get(epoch, "test");
    const json_t *loss = set ? json_object_get(set, "loss") : json_object_get(epoch, "train_loss");
    return json_is_number(loss) ? json_number_value(loss) : HUGE_VAL;
}

size_t dp_epoch_best(const json_t *epochs)
{
    size_t best = 0;
    for (size_t i = 1; i < json_array_size(epochs); i++)
        if (dp_epoch_loss(json_array_get(epochs, i)) < dp_epoch_loss(json_array_get(epochs, best)))
            best = i;
    return best;
}
