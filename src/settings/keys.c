#include "settings/keys.h"

#include "credentials/access_keys.h"
#include "customers/cooldown.h"
#include "customers/last_mail.h"

enum err keys_read(const struct settings *s, struct server_keys *ret, struct why *why)
{
    const struct {
        const char *purpose;
        struct digest *key;
    } all[] = {
        {FINGERPRINT_PURPOSE, &ret->fingerprint}, {IDENTIFIER_PURPOSE, &ret->identifiers},
        {ACCESS_KEY_PURPOSE, &ret->access_keys},  {LAST_MAIL_PURPOSE, &ret->last_mails},
        {JWT_OWN_PURPOSE, &ret->tokens},          {"pages", &ret->pages},
        {COOLDOWN_PURPOSE, &ret->cooldowns},
    };
    char master[SECRET_KEY_MAX + 1];
    enum err e = settings_secret_key(s, true, master, why);
    for (size_t i = 0; i < COUNT_OF(all) && !e; i++)
        e = digest_derive(str_of(master), all[i].purpose, all[i].key);
    if (!e)
        e = code_keys_derive(str_of(master), CODE_FOR_CLEANUP, &ret->codes);
    if (!e)
        e = code_keys_derive(str_of(master), CODE_FOR_SIGN_IN, &ret->sign_in_codes);
    if (!e)
        e = proof_keys_derive(str_of(master), &ret->proofs);
    secret_wipe(master, sizeof master);
    return e;
}
