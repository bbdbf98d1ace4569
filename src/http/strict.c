#include "http/strict.h"

#include <string.h>

#include "base/str.h"

struct heads {
    int hosts, lengths, codings;
    bool doubtful;
};

static bool is_token(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        if (c <= ' ' || c >= 127 || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return name.len > 0;
}

static bool is_field_value(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if ((c < ' ' && c != '\t') || c == 127)
            return false;
    }
    return true;
}

static bool is_digits(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
    return value.len > 0;
}

static enum MHD_Result look_at(void *context, enum MHD_ValueKind kind, const char *key, size_t key_len,
                               const char *value, size_t value_len)
{
    (void)kind;
    struct heads *heads = context;
    struct str name = {key, key_len}, content = {value ? value : "", value ? value_len : 0};
    if (!is_token(name) || !is_field_value(content))
        heads->doubtful = true;
    if (str_eq_nocase(name, STR("Host"))) {
        heads->hosts++;
    } else if (str_eq_nocase(name, STR("Content-Length"))) {
        heads->lengths++;
        if (!is_digits(content))
            heads->doubtful = true;
    } else if (str_eq_nocase(name, STR("Transfer-Encoding"))) {
        heads->codings++;
        if (!str_eq_nocase(content, STR("chunked")))
            heads->doubtful = true;
    }
    return MHD_YES;
}

bool strict_accepts(struct MHD_Connection *connection, const char *version)
{
    struct heads heads = {0};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look_at, &heads);
    bool current = strcmp(version, "HTTP/1.1") == 0;
    if (!current && strcmp(version, "HTTP/1.0") != 0)
        return false;
    if (heads.hosts > 1 || (current && heads.hosts == 0))
        return false;
    if (heads.lengths > 1 || heads.codings > 1 || (heads.lengths && heads.codings))
        return false;
    return !heads.doubtful && (current || heads.codings == 0);
}
