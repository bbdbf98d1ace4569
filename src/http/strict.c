#include "http/strict.h"

#include <string.h>

#include "base/str.h"

_Static_assert(MHD_VERSION >= 0x00097500, "strict.c is written for libmicrohttpd 0.9.75 and newer");

struct heads {
    int hosts, lengths, codings;
    const char *accounted; /* the head has been read up to here, with nothing left over */
    bool doubtful;
};

#if !STRICT_BY_LEVEL
/* libmicrohttpd 0.9.75 appends a folded line to the *name* before it and takes a line without a name for the end of the
 * head; the values that it hands out show neither. But names and values lie in its buffer as they came, with colons and
 * line ends turned into NULs, so between two of them there must be one line end and nothing else but blanks. */
static bool is_one_after(const char *from, const char *to, int line_ends)
{
    int nuls = 0;
    if (to < from)
        return false;
    for (; from < to; from++) {
        if (*from == '\0')
            nuls++;
        else if (*from != ' ' && *from != '\t')
            return false;
    }
    return nuls == 2 * line_ends;
}

/* The value begins behind the colon, which is a NUL now, and blanks. */
static bool is_value_of(struct str name, const char *value)
{
    const char *at = name.at + name.len;
    if (value <= at || *at++ != '\0')
        return false;
    while (at < value && (*at == ' ' || *at == '\t'))
        at++;
    return at == value;
}

static bool follows(const struct heads *heads, struct str name, const char *value)
{
    return is_one_after(heads->accounted, name.at, 1) && is_value_of(name, value);
}

static bool is_whole(struct MHD_Connection *connection, const struct heads *heads, const char *method)
{
    const union MHD_ConnectionInfo *size = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return size && is_one_after(heads->accounted, method + size->header_size, 2);
}
#else
static bool follows(const struct heads *heads, struct str name, const char *value)
{
    (void)heads, (void)name, (void)value;
    return true;
}

static bool is_whole(struct MHD_Connection *connection, const struct heads *heads, const char *method)
{
    (void)connection, (void)heads, (void)method;
    return true;
}
#endif

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

static enum MHD_Result check_field(void *context, enum MHD_ValueKind kind, const char *key, size_t key_len,
                                   const char *value, size_t value_len)
{
    (void)kind;
    struct heads *heads = context;
    struct str name = {key, key_len}, content = {value ? value : "", value ? value_len : 0};
    if (!is_token(name) || !is_field_value(content) || !follows(heads, name, content.at))
        heads->doubtful = true;
    heads->accounted = content.at + content.len;
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

bool strict_accepts(struct MHD_Connection *connection, const char *method, const char *version)
{
    struct heads heads = {.accounted = version + strlen(version)};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, check_field, &heads);
    if (heads.doubtful || !is_whole(connection, &heads, method))
        return false;
    bool current = strcmp(version, "HTTP/1.1") == 0;
    if (!current && strcmp(version, "HTTP/1.0") != 0)
        return false;
    if (heads.hosts > 1 || (current && heads.hosts == 0))
        return false;
    if (heads.lengths > 1 || heads.codings > 1 || (heads.lengths && heads.codings))
        return false;
    return current || heads.codings == 0;
}
