import { useSyncExternalStore } from "react";

// The same widths as in tail.css: on a phone a record takes two lines.
const NARROW = "(max-width: 860px)";
const ROW_PX = 32;
const NARROW_ROW_PX = 54;

function listen(listener: () => void): () => void {
  const query = window.matchMedia(NARROW);
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}

export const useRowHeight = (): number =>
  useSyncExternalStore(listen, () => (window.matchMedia(NARROW).matches ? NARROW_ROW_PX : ROW_PX));
