#include "base/embedded.h"

#include <string.h>

const struct embedded *embedded_find(const char *name)
{
    size_t low = 0, high = embedded_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, embedded_files[middle].name);
        if (order == 0)
            return &embedded_files[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
