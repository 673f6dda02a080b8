-- +goose Up
-- Whether charges.Daily does its work, for health.

alter table asaas_charges_runs add column if not exists since timestamptz not null default now(); -- of the row
alter table asaas_charges_runs add column if not exists ended timestamptz; -- of the last run that came to its end, whatever failed in it
alter table asaas_charges_runs add column if not exists failed text[] not null default '{}'; -- ids of charges that the last run could not copy or apply

insert into asaas_charges_migrations (version) values (2) on conflict do nothing;
