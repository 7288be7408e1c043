// Everything pure, in one place for the tests.

export * from "./decode";
export * from "./diff";
export * from "./format";
export * from "./heat";
export * from "./layout";
export * from "./names";
export * from "./navigate";
export * from "./order";
export * from "./pivot";
export * from "./recursion";
export * from "./scene";
export * from "./search";
export * from "./selection";
export * from "./state";
export * from "./ticks";
export * from "./window";
export * from "./tree";
export { shortType, takersOf } from "./store_state";
