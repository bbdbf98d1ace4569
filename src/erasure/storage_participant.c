/* What a participant of kind storage may be, and whether it can be used. */
#include <stdio.h>
#include <string.h>

#include "erasure/storage.h"
#include "erasure/storage_api.h"

const char *storage_fault(const char *url, const char *key, const char *bucket, int64_t deadline_ns, char into[200])
{
    struct storage_api api;
    struct storage_trouble trouble = {"no memory to ask the Storage API"};
    enum err e = storage_api_open(&api, url, key);
    if (!e)
        e = storage_check_bucket(&api, str_of(bucket), deadline_ns, &trouble);
    storage_api_close(&api);
    (void)snprintf(into, 200, "%s", trouble.words);
    return e ? into : NULL;
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            return false;
    return text.len > 0 && str_is_utf8(text);
}

bool storage_bucket_is_sound(struct str bucket)
{
    return bucket.len <= STORAGE_BUCKET_MAX && is_plain(bucket) && !memchr(bucket.at, '/', bucket.len) &&
           !str_eq(bucket, STR(".")) && !str_eq(bucket, STR(".."));
}

/* Other braces are probably a placeholder that is not known here. */
bool storage_prefix_is_sound(struct str prefix)
{
    size_t users = 0;
    for (size_t i = 0; i < prefix.len; i++) {
        struct str rest = {prefix.at + i, prefix.len - i};
        bool user = str_starts(rest, STR(STORAGE_USER));
        if (!user && (prefix.at[i] == '{' || prefix.at[i] == '}'))
            return false;
        users += user;
        i += user ? sizeof STORAGE_USER - 2 : 0;
    }
    return users > 0 && prefix.len <= STORAGE_PREFIX_MAX && is_plain(prefix) && prefix.at[0] != '/';
}
