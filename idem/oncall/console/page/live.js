// Refreshes a page while somebody looks at it. What people have chosen, typed, focused and
// selected stays: where the new page has no place for it, the page stays as it is.
"use strict";
(() => {
	const main = document.getElementById("main"), note = document.getElementById("live"), old = document.getElementById("old");
	const least = 1000 * main.dataset.live;
	let timer = 0, asking = false, ended = false, served = main.innerHTML;

	const key = e => [e.tagName, e.id, e.getAttribute("name"), e.getAttribute("value"), e.getAttribute("href")].join("\n");
	const same = (e, within) => {
		const all = of => [...of.querySelectorAll(e.tagName)].filter(other => key(other) === key(e));
		return all(within)[all(main).indexOf(e)];
	};
	const boxes = of => [...of.querySelectorAll("input[type=checkbox]")];
	const isTyped = e => e.tagName === "SELECT" ? e.selectedIndex !== Math.max(0, [...e.options].findIndex(o => o.defaultSelected)) : e.type !== "checkbox" && e.value !== e.defaultValue;
	const isSelected = () => {
		const s = getSelection();
		return !s.isCollapsed && main.contains(s.anchorNode);
	};

	const kept = e => e.closest("[data-keep]");

	// put shows a new page, unless something would be lost. What is to be kept stays as it is.
	const put = fresh => {
		if (fresh.innerHTML === served) return;
		if ([...main.querySelectorAll("input, select, textarea")].some(e => !kept(e) && isTyped(e)) || isSelected()) return;
		const changed = boxes(main).filter(box => box.checked !== box.defaultChecked).map(box => [same(box, fresh), box.checked]);
		const at = document.activeElement;
		if (kept(at)) return;
		const focused = main.contains(at) && at !== main ? same(at, fresh) : null;
		if (changed.some(([box]) => !box) || focused === undefined) return;
		const html = fresh.innerHTML, x = scrollX, y = scrollY;
		for (const [box, checked] of changed) box.checked = checked;
		for (const e of main.querySelectorAll("[data-keep]")) fresh.querySelector(`[data-keep="${e.dataset.keep}"]`)?.replaceWith(e);
		main.replaceChildren(...fresh.childNodes);
		served = html;
		if (focused) focused.focus({preventScroll: true});
		scrollTo(x, y);
	};

	const end = () => {
		ended = old.hidden = true;
		note.hidden = false;
	};
	const fail = () => {
		old.hidden = false;
		return 6 * least;
	};

	const ask = async () => {
		if (asking || ended || document.hidden) return;
		asking = true;
		const start = performance.now();
		let wait = least;
		try {
			const answer = await fetch(location.href, {redirect: "manual", cache: "no-store"}); // one leads to a login
			const page = new DOMParser().parseFromString(await answer.text(), "text/html"), fresh = page.getElementById("main");
			if (answer.status >= 500) wait = fail();
			else if (!answer.ok || !fresh) end();
			else {
				old.hidden = true;
				put(fresh);
				if (fresh.dataset.live) wait = 1000 * fresh.dataset.live;
				else ended = true; // what it showed has come to its end
			}
		} catch {
			wait = fail();
		}
		asking = false;
		clearTimeout(timer);
		if (!ended) timer = setTimeout(ask, Math.max(wait, 10 * (performance.now() - start)));
	};

	document.addEventListener("visibilitychange", () => {
		clearTimeout(timer);
		if (!document.hidden && !ended) timer = setTimeout(ask, 300);
	});
	timer = setTimeout(ask, least);
})();
