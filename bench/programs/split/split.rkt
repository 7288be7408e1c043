#lang racket/base
; Likewise, for Racket.
(require racket/fixnum)
(define seconds (string->number (vector-ref (current-command-line-arguments) 0)))
(define (spin n x) (if (fx= n 0) x (spin (fx- n 1) (fxmodulo (fx* x 16807) 2147483647))))
(define (sixty x) (fx+ 1 (spin 600000 x)))
(define (thirty x) (fx+ 1 (spin 300000 x)))
(define (ten x) (fx+ 1 (spin 100000 x)))
(define finish (+ seconds (current-seconds)))
(let loop ([x 1]) (when (< (current-seconds) finish) (loop (ten (thirty (sixty x))))))
