#include "server/open_pages.h"

enum err open_pages(const struct settings *s, bool demo, const struct server_keys *keys,
                    const struct sentences *sentences, struct pages **ret, struct why *why)
{
    if (!s->pages)
        return OK;
    return pages_new(&(struct pages_config){.key = &keys->pages,
                                            .token_key = &keys->tokens,
                                            .public_url = s->public_url,
                                            .signup_url = s->signup_url,
                                            .brand_name = s->brand_name,
                                            .brand_logo = s->brand_logo,
                                            .brand_color = s->brand_color,
                                            .language = s->language,
                                            .sentences = sentences,
                                            .texts_folder = s->texts,
                                            .demo = demo,
                                            .uniform = s->enumeration == ENUMERATION_UNIFORM,
                                            .probe_off = !s->probe,
                                            .has_mailbox = settings_shows_mailbox(s, demo),
                                            .six_digits = s->contract == CONTRACT_REGISTRATION_RECOVERY,
                                            .grace_ms = s->grace_ms,
                                            .backup_retention_ms = s->backup_retention_ms,
                                            .audit_retention_ms = s->audit_retention_ms},
                     ret, why);
}
