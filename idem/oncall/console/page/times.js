// Writes times in the zone and the language of whoever looks. Point at one, or touch it, for UTC.
"use strict";
(() => {
	const page = document.documentElement.lang;
	const format = new Intl.DateTimeFormat(page, {
		year: "numeric", month: page === "en" ? "short" : "2-digit", day: "2-digit",
		hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
	});
	const zone = format.resolvedOptions().timeZone;
	if (zone === "UTC") return; // as it is

	const write = () => {
		for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
			time.title = time.textContent;
			time.textContent = format.format(new Date(time.dateTime));
		}
	};
	write();
	new MutationObserver(write).observe(document.body, {childList: true, subtree: true});
	document.addEventListener("click", event => {
		const time = event.target.closest("time[title]");
		if (time) [time.textContent, time.title] = [time.title, time.textContent];
	});
	for (const says of document.querySelectorAll("[data-zone]")) {
		says.textContent = says.dataset.zone.replace("UTC", zone);
		says.hidden = false;
	}

	// Forms show their times in the zone, too, and send UTC.
	const minute = 60 * 1000;
	const shown = utc => {
		const at = new Date(utc + "Z");
		return isNaN(at) ? utc : new Date(at - at.getTimezoneOffset() * minute).toISOString().slice(0, utc.length);
	};
	const sent = local => isNaN(new Date(local)) ? local : new Date(local).toISOString().slice(0, 19);
	for (const input of document.querySelectorAll("input[type=datetime-local]")) {
		input.value = shown(input.getAttribute("value"));
		input.form.addEventListener("formdata", event => event.formData.set(input.name, sent(input.value)));
	}
})();
