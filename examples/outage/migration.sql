-- Version 2 books what Asaas keeps for itself, too.
alter table entries add column fee numeric(12, 2);
