-- A value for a column of this type that no other row has, as SQL over a row t with an id; null when there is none. The whole
-- id is in it, in fewer characters where the column is narrow; in 16 to 21 a digest of it.
CREATE OR REPLACE FUNCTION reclaim.unique_value(p_type oid, p_width integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE
    WHEN t.typcategory = 'S' THEN CASE WHEN coalesce(p_width, 44) >= 44 THEN '''deleted_'' || t.id'
      WHEN p_width >= 32 THEN 'replace(t.id::text, ''-'', '''')'
      WHEN p_width >= 22 THEN 'rtrim(encode(uuid_send(t.id::uuid), ''base64''), ''='')'
      WHEN p_width >= 16 THEN format('left(encode(sha256(t.id::text::bytea), ''base64''), %s)', p_width) END
    WHEN t.oid = 'uuid'::regtype THEN 't.id::uuid'
    WHEN t.oid = 'bytea'::regtype THEN 'uuid_send(t.id::uuid)'
    WHEN t.oid = 'jsonb'::regtype THEN 'jsonb_build_object(''deleted'', t.id)'
    WHEN t.oid IN ('text[]'::regtype, 'varchar[]'::regtype) THEN 'ARRAY[''deleted_'' || t.id]' END
  FROM pg_type t WHERE t.oid = p_type AND t.oid <> '"char"'::regtype
$$;
REVOKE ALL ON FUNCTION reclaim.unique_value FROM PUBLIC;
