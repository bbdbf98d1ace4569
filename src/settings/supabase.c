/* The types of settings that say how Supabase's services are reached, and how they prove who they are. */
#include <sodium.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "credentials/webhook_signature.h"
#include "settings/table.h"

static enum err parse_hook_secret(const struct setting *row, struct str text, struct arena *arena, void *field,
                                  struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    struct webhook_secrets secrets;
    enum err e = webhook_secrets_read(text, &secrets);
    secret_wipe(&secrets, sizeof secrets);
    if (!e)
        *(const char **)field = text.at;
    return e;
}

static void expects_hook_secret(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addf(out, "v1,whsec_ and base64 of %d to %d bytes, at most %d with | between them", WEBHOOK_SECRET_MIN,
             WEBHOOK_SECRET_MAX, WEBHOOK_SECRETS_MAX);
}

static void show_nothing(struct str text, struct buf *out)
{
    (void)text;
    buf_addz(out, "***");
}

const struct setting_type setting_hook_secret = {parse_hook_secret, expects_hook_secret, show_nothing};

/* The role that a legacy key is for, which is a token; "" for other keys. */
static void read_role(struct str key, char *ret, size_t size)
{
    unsigned char bytes[2048];
    size_t len;
    struct str rest = key, head, claims_part, role;
    *ret = 0;
    if (!str_split(&rest, '.', &head))
        return;
    if (!str_split(&rest, '.', &claims_part) ||
        sodium_base642bin(bytes, sizeof bytes, claims_part.at, claims_part.len, NULL, &len, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING))
        return;
    AUTO(json) json_t *claims = json_read_object((struct str){(const char *)bytes, len}, NULL);
    if (!claims || json_get_str(claims, "role", &role) || str_copy(role, ret, size))
        *ret = 0;
}

/* A key for browsers would list no objects, and every erasure would seem to be complete. */
static enum err parse_storage_key(const struct setting *row, struct str text, struct arena *arena, void *field,
                                  struct str *wrong)
{
    char role[32];
    read_role(text, role, sizeof role);
    if (str_starts(text, STR("sb_publishable_")) || strcmp(role, "anon") == 0 || strcmp(role, "authenticated") == 0)
        return ERR_INPUT;
    return setting_string.parse(row, text, arena, field, wrong);
}

static void expects_storage_key(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out, "the project's secret key, sb_secret_…, or its service_role key");
}

const struct setting_type setting_storage_key = {parse_storage_key, expects_storage_key, show_nothing};
